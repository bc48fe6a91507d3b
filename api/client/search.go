package client

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

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

// SearchActivations returns one page of the activations of all functions that q selects, as SearchJobs
// does for jobs. q has at most one function, status and trigger, and no id. CodeMirrorUnavailable,
// CodeSearchSyntax, CodeSearchDeadline.
func (t *Tenant) SearchActivations(ctx context.Context, q search.Activations, o PageOptions) (search.Results[api.Activation], error) {
	q.Sort = cmp.Or(q.Sort, search.SortCreated) // a list without any field of the mirror is that of the store
	query := q.SearchValues()
	for name, values := range o.query() {
		query[name] = values
	}
	var out search.Results[api.Activation]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("activations"), query: query}, nil, &out)
	return out, err
}

// JobSeries returns figures of the jobs that ended in a time. Filters of the time of the end, and the
// order, do not apply. Errors: as of SearchJobs.
func (t *Tenant) JobSeries(ctx context.Context, q search.Jobs, r search.SeriesRange) (search.Series, error) {
	q.Order, q.Ended = search.Order{}, search.Range{}
	return t.series(ctx, "jobs", q.Values(), r)
}

// ActivationSeries returns figures of the activations that ended in a time. Of q only the filters
// apply that search.ActivationParameters describes. Errors: as of SearchJobs.
func (t *Tenant) ActivationSeries(ctx context.Context, q search.Activations, r search.SeriesRange) (search.Series, error) {
	return t.series(ctx, "activations", q.Values(), r)
}

func (t *Tenant) series(ctx context.Context, of string, query url.Values, r search.SeriesRange) (search.Series, error) {
	for name, value := range map[string]int64{"from_ms": r.FromMS, "to_ms": r.ToMS, "bucket_ms": r.BucketMS} {
		if value != 0 {
			query.Set(name, strconv.FormatInt(value, 10))
		}
	}
	var out search.Series
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path(of) + ":series", query: query}, nil, &out)
	return out, err
}
