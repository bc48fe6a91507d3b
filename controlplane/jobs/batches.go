package jobs

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathBatches = rest.PathNamespace + "/batches"
	pathBatch   = pathBatches + "/{batch_id}"
)

// createBatchInput is the input of createBatch. The body is optional: a batch without a
// callback only counts its jobs.
type createBatchInput struct {
	rest.NamespacePath
	Body *createBatchBody
}

type createBatchBody struct {
	Callback *api.BatchCallback `json:"callback,omitempty" doc:"the job to enqueue when the batch is sealed and all of its jobs have ended"`
}

type batchInput struct {
	rest.NamespacePath
	BatchID string `path:"batch_id" doc:"a UUID"`
}

// Resolve refuses a malformed tenant, namespace or batch id.
func (p *batchInput) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)), api.ValidateBatchID(p.BatchID))
}

type batchOutput struct{ Body api.Batch }

func (a *API) batchEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathBatches, Action: access.BatchCreate, Extent: rest.PathNamespaceOnly,
			ID: "create-batch", Tag: "batches", Summary: "Begin a batch of jobs", Status: http.StatusCreated,
			Description: "A job is added to the batch by its batch_id when it is enqueued, until the batch is sealed. An open batch is deleted 7 days after its last change.",
		}, a.createBatch),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathBatch, Action: access.BatchRead, Extent: rest.PathNamespaceOnly,
			ID: "get-batch", Tag: "batches", Summary: "Read a batch with its counts",
		}, func(ctx context.Context, in *batchInput) (*batchOutput, error) {
			return answerBatch(a.queue.GetBatch(ctx, string(in.Tenant), string(in.Namespace), in.BatchID))
		}),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathBatches, Action: access.BatchRead, Extent: rest.PathNamespaceOnly,
			ID: "list-batches", Tag: "batches", Summary: "List a namespace's batches with their counts, newest first",
			Description: "A page may be short, even empty, and still have a next_cursor.",
		}, a.listBatches),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathBatch, Action: access.BatchDelete, Extent: rest.PathNamespaceOnly,
			ID: "delete-batch", Tag: "batches", Summary: "Delete a batch",
			Description: "Its jobs stay. Its callback is not enqueued, unless it was before.",
		}, func(ctx context.Context, in *batchInput) (*struct{}, error) {
			return nil, a.queue.DeleteBatch(ctx, string(in.Tenant), string(in.Namespace), in.BatchID)
		}),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathBatch + ":seal", Action: access.BatchSeal, Extent: rest.PathNamespaceOnly,
			ID: "seal-batch", Tag: "batches", Summary: "Close a batch to further jobs",
			Description: "The callback job is enqueued once, when all jobs of the batch have ended. A repeated call succeeds.",
		}, func(ctx context.Context, in *batchInput) (*batchOutput, error) {
			return answerBatch(a.queue.SealBatch(ctx, string(in.Tenant), string(in.Namespace), in.BatchID))
		}),
	}
}

type listBatchesInput struct {
	rest.NamespacePath
	rest.PageQuery
}

// listBatches answers with a page of a namespace's batches, newest first.
func (a *API) listBatches(ctx context.Context, in *listBatchesInput) (*rest.PageOutput[api.Batch], error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	return rest.ReadPage(rest.ListScope("batches", tenant, namespace), in.Cursor, func(after string) ([]api.Batch, string, error) {
		return a.queue.ListBatches(ctx, tenant, namespace, after, in.Limit)
	})
}

// answerBatch answers with a batch. It takes the results of a method of the broker.
func answerBatch(b *api.Batch, err error) (*batchOutput, error) {
	if err != nil {
		return nil, err
	}
	return &batchOutput{Body: *b}, nil
}

// createBatch creates an open batch. Its callback is a job for which only the list of roles is
// checked again when it runs, so the caller must be allowed to run its target. Errors:
// CodeInvalid, CodeQueueReserved, those of mayRun.
//
// A batch is used in three steps, in this order: a sealed batch takes no more jobs
// (CodeBatchSealed). The jobs run meanwhile. The callback is enqueued once, by the later of
// the seal and the end of the last job.
//
//	POST N/batches {"callback": {"queue": "reports"}}            201, {"id": B, …}
//	POST N/queues/pages/jobs {"batch_id": B, …}                  any number of times
//	POST N/batches/B:seal
func (a *API) createBatch(ctx context.Context, in *createBatchInput) (*batchOutput, error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	var callback *api.BatchCallback
	if in.Body != nil && in.Body.Callback != nil {
		callback = in.Body.Callback
		if err := a.mayRun(ctx, tenant, namespace, &callback.JobOptions); err != nil {
			return nil, err
		}
		callback.By = author(ctx)
	}
	return answerBatch(a.queue.CreateBatch(ctx, tenant, namespace, callback))
}
