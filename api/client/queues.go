package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
)

// Queues returns one page of the namespace's queues, by name, with their depths.
func (n *Namespace) Queues(ctx context.Context, o PageOptions) (api.Page[api.Queue], error) {
	var out api.Page[api.Queue]
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("queues"), query: o.query()}, nil, &out)
	return out, err
}

// QueueState is a queue and the ETag of its configuration, for QueueChange.IfMatch.
type QueueState struct {
	api.Queue
	ETag string `json:"-"`
}

// QueueChange is a partial update of a queue's configuration. A nil field is left unchanged.
type QueueChange struct {
	Paused         *bool   `json:"paused,omitempty"`
	MaxConcurrency *int64  `json:"max_concurrency,omitempty"`
	RateLimit      *int64  `json:"rate_limit,omitempty"`
	RateWindowMS   *int64  `json:"rate_window_ms,omitempty"`
	RetentionMS    *int64  `json:"retention_ms,omitempty"` // 0: as the tenant's other queues
	Provider       *string `json:"provider,omitempty"`     // of models, "" for none
	Events         *string `json:"events,omitempty"`       // which are recorded, see api/event
	// IfMatch is the ETag that the configuration must have, "" for any.
	IfMatch string `json:"-"`
}

// Get returns the queue with its depths. CodeQueueNotFound.
func (q *Queue) Get(ctx context.Context) (QueueState, error) {
	return q.state(ctx, &request{method: http.MethodGet, path: q.path()}, nil)
}

// Configure changes the configuration of the queue, and creates the queue if it does not
// exist. CodePreconditionFailed.
func (q *Queue) Configure(ctx context.Context, c QueueChange) (QueueState, error) {
	r := &request{method: http.MethodPatch, path: q.path(), header: http.Header{}}
	if c.IfMatch != "" {
		r.header.Set("If-Match", c.IfMatch)
	}
	return q.state(ctx, r, c)
}

// Drain makes the queue reject new jobs and hand out those that it has.
// CodeQueueNotFound.
func (q *Queue) Drain(ctx context.Context) (QueueState, error) {
	return q.state(ctx, &request{method: http.MethodPost, path: q.path() + ":drain"}, nil)
}

// Resume ends a pause and a drain. CodeQueueNotFound.
func (q *Queue) Resume(ctx context.Context) (QueueState, error) {
	return q.state(ctx, &request{method: http.MethodPost, path: q.path() + ":resume"}, nil)
}

func (q *Queue) state(ctx context.Context, r *request, in any) (QueueState, error) {
	var out QueueState
	a, err := q.client().call(ctx, r, in, &out.Queue)
	if err != nil {
		return QueueState{}, err
	}
	out.ETag = a.header.Get("ETag")
	return out, nil
}

// Clear removes the jobs that wait and returns their number. CodeQueueNotFound.
func (q *Queue) Clear(ctx context.Context) (int, error) {
	var out struct {
		Cleared int `json:"cleared"`
	}
	_, err := q.client().call(ctx, &request{method: http.MethodPost, path: q.path() + ":clear"}, nil, &out)
	return out.Cleared, err
}

// Redrive selects dead jobs for one more attempt. Its zero value selects all of them.
type Redrive struct {
	IDs      []string `json:"ids,omitempty"`
	Reason   string   `json:"reason,omitempty"` // one of the api.Dead… reasons
	Tag      string   `json:"tag,omitempty"`
	TagValue string   `json:"tag_value,omitempty"`
	FromMS   int64    `json:"from_ms,omitempty"` // dead at or after this time
	ToMS     int64    `json:"to_ms,omitempty"`   // dead before this time
	Limit    int      `json:"limit,omitempty"`
}

// Redrive retries the selected dead jobs and returns their number.
// CodeQueueNotFound.
func (q *Queue) Redrive(ctx context.Context, f Redrive) (int, error) {
	var out struct {
		Redriven int `json:"redriven"`
	}
	_, err := q.client().call(ctx, &request{method: http.MethodPost, path: q.path() + ":redrive"}, f, &out)
	return out.Redriven, err
}

// Delete removes the queue with all its jobs. CodeQueueNotFound, CodeQueueBusy
// while one of them is active.
func (q *Queue) Delete(ctx context.Context) error {
	_, err := q.client().call(ctx, &request{method: http.MethodDelete, path: q.path()}, nil, nil)
	return err
}
