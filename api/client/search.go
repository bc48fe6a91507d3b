package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

// SearchJobs returns one page of the jobs of all queues that q selects. It may be shorter than its
// limit and still have a cursor. CodeMirrorUnavailable on a replica without a mirror,
// CodeSearchSyntax for full text that cannot be read, CodeSearchDeadline.
func (t *Tenant) SearchJobs(ctx context.Context, q search.Jobs, o PageOptions) (search.Results[api.Job], error) {
	query := q.Values()
	for name, values := range o.query() {
		query[name] = values
	}
	var out search.Results[api.Job]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("jobs"), query: query}, nil, &out)
	return out, err
}
