package search

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

var activations = &table{
	name: "activations", words: "activation_words",
	state:   "status",
	columns: []string{"id", "function", "error", "result"},
	sorts: map[string]sortKey{
		search.SortEnded:    {expr: "j.end_ms", has: "j.end_ms > 0", index: "activations_ended"},
		search.SortDuration: {expr: "j.duration_ms", has: "true", index: "activations_duration"},
	},
}

// statuses are those of activations.
var statuses = distinct([]api.Status{api.StatusQueued, api.StatusRunning, api.StatusSuccess, api.StatusError, api.StatusTimeout, api.StatusCancelled})

// Activations returns activations without their results, as Jobs returns jobs.
func (s *Searcher) Activations(ctx context.Context, tenant string, q *search.Activations, cursor string, limit int) (*Result[api.Activation], error) {
	selected, err := activationSelection(tenant, q)
	if err != nil {
		return nil, err
	}
	return readResult(ctx, s, selected, q.Order, cursor, limit, func(a *api.Activation) { a.Result = nil })
}

// activationSelection returns the selection of q. Errors: CodeInvalid, CodeSearchSyntax.
func activationSelection(tenant string, q *search.Activations) (*selection, error) {
	texts := map[string][]string{
		"namespace": {q.Namespace}, "function": q.Functions, "trigger": q.Triggers, "error_type": {q.ErrorType}, "error": {q.Error},
		"id": {q.ID}, "job": {q.Job}, "request": {q.Request}, "status": distinct(q.Statuses),
	}
	if err := validateTexts(texts); err != nil {
		return nil, err
	}
	s := newSelection(activations, tenant)
	s.equal("job_id", q.Job, "activations_job")
	s.equal("error_type", q.ErrorType, "activations_failed")
	s.equal("request_id", q.Request, "")
	s.equal("namespace", q.Namespace, "")
	among(s, "function", q.Functions)
	among(s, "status", q.Statuses)
	among(s, "trigger", q.Triggers)
	s.created("start_ms", q.Started)
	s.within("end_ms", search.SortEnded, q.Ended)
	if q.Version > 0 {
		s.and("j.version = ?", q.Version)
	}
	if q.DurationMS > 0 {
		s.and("j.duration_ms >= ?", q.DurationMS)
	}
	if n := len(q.ID); n > 0 {
		s.and("(substr(j.id, 1, ?) = ? OR substr(j.id, -?) = ?)", n, q.ID, n, q.ID)
	}
	if q.Error != "" {
		s.and("j.error IS NOT NULL")
		s.contains("error", q.Error)
	}
	s.addStates("function", distinct(q.Functions), q.Namespace, distinct(q.Statuses), statuses)
	return s, s.matching(q.Words)
}
