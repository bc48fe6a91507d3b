package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

// PreviewBulk returns how many jobs a bulk operation would select, and the oldest of them.
// CodeMirrorUnavailable on a replica without a mirror, CodeSearchSyntax, CodeSearchDeadline.
func (t *Tenant) PreviewBulk(ctx context.Context, n search.NewBulk) (search.BulkPreview, error) {
	var out search.BulkPreview
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("bulk") + ":preview", again: true}, &n, &out)
	return out, err
}

// CreateBulk retries, cancels, moves or deletes all jobs that a search selects. It returns the
// operation, which runs on the server. With an idempotency key ("" for none) the call is safe to
// repeat. Errors: those of PreviewBulk, CodeBulkLimit, CodeIdempotencyMismatch.
func (t *Tenant) CreateBulk(ctx context.Context, idempotencyKey string, n search.NewBulk) (search.Bulk, error) {
	r := &request{method: http.MethodPost, path: t.path("bulk"), header: http.Header{}}
	if idempotencyKey != "" {
		r.header.Set("Idempotency-Key", idempotencyKey)
	}
	var out search.Bulk
	_, err := t.c.call(ctx, r, &n, &out)
	return out, err
}

// Bulk returns a bulk operation with its progress. CodeBulkNotFound.
func (t *Tenant) Bulk(ctx context.Context, id string) (search.Bulk, error) {
	var out search.Bulk
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("bulk", id)}, nil, &out)
	return out, err
}

// Bulks returns one page of bulk operations, newest first.
func (t *Tenant) Bulks(ctx context.Context, o PageOptions) (api.Page[search.Bulk], error) {
	var out api.Page[search.Bulk]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("bulk"), query: o.query()}, nil, &out)
	return out, err
}

// CancelBulk ends a bulk operation after the jobs in progress. CodeBulkNotFound, CodeBulkEnded.
func (t *Tenant) CancelBulk(ctx context.Context, id string) (search.Bulk, error) {
	var out search.Bulk
	_, err := t.c.call(ctx, &request{method: http.MethodPost, path: t.path("bulk", id) + ":cancel", again: true}, nil, &out)
	return out, err
}
