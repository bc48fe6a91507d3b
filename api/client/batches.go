package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
)

// CreateBatch creates a batch, to which jobs are added by its id. callback is enqueued
// when all jobs have ended; it may be nil.
func (n *Namespace) CreateBatch(ctx context.Context, callback *api.BatchCallback) (api.Batch, error) {
	in := struct {
		Callback *api.BatchCallback `json:"callback,omitempty"`
	}{callback}
	var out api.Batch
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodPost, path: n.path("batches")}, in, &out)
	return out, err
}

// Batch returns a batch with its counts. CodeBatchNotFound.
func (n *Namespace) Batch(ctx context.Context, id string) (api.Batch, error) {
	var out api.Batch
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("batches", id)}, nil, &out)
	return out, err
}

// SealBatch closes a batch to further jobs. A repeat succeeds. CodeBatchNotFound.
func (n *Namespace) SealBatch(ctx context.Context, id string) (api.Batch, error) {
	var out api.Batch
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodPost, path: n.path("batches", id) + ":seal"}, nil, &out)
	return out, err
}

// Batches returns a page of the namespace's batches, newest first.
func (n *Namespace) Batches(ctx context.Context, o PageOptions) (api.Page[api.Batch], error) {
	var out api.Page[api.Batch]
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("batches"), query: o.query()}, nil, &out)
	return out, err
}

// DeleteBatch deletes a batch; its jobs stay, and its callback is not enqueued, unless it was
// before. CodeBatchNotFound.
func (n *Namespace) DeleteBatch(ctx context.Context, id string) error {
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodDelete, path: n.path("batches", id)}, nil, nil)
	return err
}
