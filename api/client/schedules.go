package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/codesous/sous/api"
)

// CreateSchedule creates a schedule. CodeScheduleExists; CodeFunctionNotFound,
// CodeAliasNotFound and CodeVersionNotFound for its target.
func (n *Namespace) CreateSchedule(ctx context.Context, s api.NewSchedule) (api.ScheduleStatus, error) {
	var out api.ScheduleStatus
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodPost, path: n.path("schedules")}, s, &out)
	return out, err
}

// Schedules returns one page of the namespace's schedules, by name, with their status.
func (n *Namespace) Schedules(ctx context.Context, o PageOptions) (api.Page[api.ScheduleStatus], error) {
	var out api.Page[api.ScheduleStatus]
	_, err := n.tenant.c.call(ctx, &request{method: http.MethodGet, path: n.path("schedules"), query: o.query()}, nil, &out)
	return out, err
}

// Schedule returns the handle of a schedule. It sends no request.
func (n *Namespace) Schedule(name string) *Schedule { return &Schedule{n, name} }

// Schedule is one schedule of a namespace.
type Schedule struct {
	namespace *Namespace
	name      string
}

func (s *Schedule) path() string    { return s.namespace.path("schedules", s.name) }
func (s *Schedule) client() *Client { return s.namespace.tenant.c }

// ScheduleChange is a partial update of a schedule. A nil field is left unchanged.
type ScheduleChange struct {
	EverySeconds    *int64             `json:"every_seconds,omitempty"`
	Cron            *string            `json:"cron,omitempty"`
	Timezone        *string            `json:"timezone,omitempty"`
	OverlapPolicy   *string            `json:"overlap_policy,omitempty"`
	QueueLimit      *int               `json:"queue_limit,omitempty"`
	Catchup         *string            `json:"catchup,omitempty"`
	MaxCatchupTicks *int               `json:"max_catchup_ticks,omitempty"`
	Ref             *api.JobTarget     `json:"ref,omitempty"`
	Queue           *api.ScheduleQueue `json:"queue,omitempty"`
	Payload         json.RawMessage    `json:"payload,omitempty"`
	Enabled         *bool              `json:"enabled,omitempty"`
	// Without lists the names of fields that are removed or set to their default:
	// {Cron: &expression, Without: []string{"every_seconds"}}.
	Without []string `json:"-"`
	// IfMatch is the revision that the schedule must have, 0 for any.
	IfMatch int64 `json:"-"`
}

// MarshalJSON encodes the fields that are set, and null for those of Without.
func (c ScheduleChange) MarshalJSON() ([]byte, error) {
	type fields ScheduleChange // without this method
	return encodePatch(fields(c), c.Without)
}

func ifRevision(revision int64) http.Header {
	h := http.Header{}
	if revision != 0 {
		h.Set("If-Match", strconv.Quote(strconv.FormatInt(revision, 10)))
	}
	return h
}

// Get returns the schedule and its status. CodeScheduleNotFound.
func (s *Schedule) Get(ctx context.Context) (api.ScheduleStatus, error) {
	var out api.ScheduleStatus
	_, err := s.client().call(ctx, &request{method: http.MethodGet, path: s.path()}, nil, &out)
	return out, err
}

// Update changes the schedule. CodeScheduleNotFound, CodePreconditionFailed.
func (s *Schedule) Update(ctx context.Context, c ScheduleChange) (api.ScheduleStatus, error) {
	var out api.ScheduleStatus
	_, err := s.client().call(ctx, &request{method: http.MethodPatch, path: s.path(), header: ifRevision(c.IfMatch)}, c, &out)
	return out, err
}

// Delete removes the schedule. If ifMatch is not 0, the schedule must have that revision.
// CodeScheduleNotFound, CodePreconditionFailed.
func (s *Schedule) Delete(ctx context.Context, ifMatch int64) error {
	_, err := s.client().call(ctx, &request{method: http.MethodDelete, path: s.path(), header: ifRevision(ifMatch)}, nil, nil)
	return err
}

// ScheduleRun is the result of a manual run.
type ScheduleRun struct {
	JobID        string `json:"job_id"`
	ActivationID string `json:"activation_id,omitempty"` // if the target is a function
}

// Run fires the schedule now. A repeat with the same idempotency key ("" for none) returns
// the first call's job. CodeScheduleNotFound, CodeScheduleBusy.
func (s *Schedule) Run(ctx context.Context, idempotencyKey string) (ScheduleRun, error) {
	r := &request{method: http.MethodPost, path: s.path() + ":run", header: http.Header{}}
	if idempotencyKey != "" {
		r.header.Set("Idempotency-Key", idempotencyKey)
	}
	var out ScheduleRun
	_, err := s.client().call(ctx, r, nil, &out)
	return out, err
}
