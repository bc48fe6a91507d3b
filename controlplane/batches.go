package controlplane

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
)

const (
	pathBatches = pathNamespaces + "/{namespace}/batches"
	pathBatch   = pathBatches + "/{batch_id}"
)

type createBatchInput struct {
	NamespacePath
	Body *createBatchBody
}

type createBatchBody struct {
	Callback *api.BatchCallback `json:"callback,omitempty" doc:"the job to be made when the batch is sealed and none of its jobs is left"`
}

type batchInput struct {
	NamespacePath
	BatchID string `path:"batch_id" doc:"a UUID"`
}

// Resolve refuses what cannot be a batch.
func (p *batchInput) Resolve(huma.Context) []error {
	return problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)), api.ValidateBatchID(p.BatchID))
}

type batchOutput struct{ Body api.Batch }

func (s *Server) routeBatches(t typedAPI) {
	tags := []string{"batches"}
	register(t, huma.Operation{
		OperationID: "create-batch", Method: http.MethodPost, Path: pathBatches, Tags: tags,
		Summary: "Begin a batch of jobs", DefaultStatus: http.StatusCreated,
		Description: "Jobs are added by their batch_id until it is sealed.",
	}, s.createBatch)
	register(t, huma.Operation{
		OperationID: "get-batch", Method: http.MethodGet, Path: pathBatch, Tags: tags,
		Summary: "Read a batch with its counts",
	}, func(ctx context.Context, in *batchInput) (*batchOutput, error) {
		return answerBatch(s.queue.GetBatch(ctx, string(in.Tenant), string(in.Namespace), in.BatchID))
	})
	register(t, huma.Operation{
		OperationID: "seal-batch", Method: http.MethodPost, Path: pathBatch + ":seal", Tags: tags,
		Summary: "Close a batch to further jobs", DefaultStatus: http.StatusOK,
		Description: "The callback is made when none of its jobs is left, once. A repeat succeeds.",
	}, func(ctx context.Context, in *batchInput) (*batchOutput, error) {
		return answerBatch(s.queue.SealBatch(ctx, string(in.Tenant), string(in.Namespace), in.BatchID))
	})
}

func answerBatch(b *api.Batch, err error) (*batchOutput, error) {
	if err != nil {
		return nil, err
	}
	return &batchOutput{Body: *b}, nil
}

func (s *Server) createBatch(ctx context.Context, in *createBatchInput) (*batchOutput, error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	var callback *api.BatchCallback
	if in.Body != nil && in.Body.Callback != nil {
		callback = in.Body.Callback
		if err := s.mayRun(ctx, tenant, namespace, &callback.JobOptions); err != nil {
			return nil, err
		}
	}
	return answerBatch(s.queue.CreateBatch(ctx, tenant, namespace, callback))
}
