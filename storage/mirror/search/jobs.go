package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage"
)

var jobs = &table{
	name: "jobs", words: "job_words",
	state:   "state",
	columns: []string{"id", "queue", "payload", "tags", "error", "result"},
	sorts: map[string]sortKey{
		search.SortStarted:  {expr: "j.started_ms", has: "j.started_ms > 0", index: "jobs_started"},
		search.SortEnded:    {expr: "j.ended_ms", has: "j.ended_ms > 0", index: "jobs_ended"},
		search.SortDue:      {expr: "j.due_ms", has: "j.due_ms > 0", index: "jobs_due"},
		search.SortDuration: {expr: "j.ended_ms - j.started_ms", has: "j.ended_ms > 0 AND j.started_ms > 0", index: "jobs_duration"},
	},
}

// Jobs returns jobs without their attempts and stacks, from the position on, "" for the first page.
// limit is at most api.MaxPageLimit (0: api.DefaultPageLimit). Errors: CodeInvalid, CodeSearchSyntax,
// CodeValidationCursor, CodeMirrorUnavailable, CodeSearchDeadline, CodeCapacityLimit.
func (s *Searcher) Jobs(ctx context.Context, tenant string, q *search.Jobs, cursor string, limit int) (*Result[api.Job], error) {
	selected, err := jobSelection(tenant, q)
	if err != nil {
		return nil, err
	}
	return readResult(ctx, s, selected, q.Order, cursor, limit, func(job *api.Job) {
		job.Attempts = nil
		job.Errors = job.Errors[max(0, len(job.Errors)-1):]
		for i := range job.Errors {
			job.Errors[i].Stack = ""
		}
	})
}

// readResult reads a page of a selection, and its count if it is asked for. trim leaves out the parts
// of a record that lists do not have.
func readResult[T any](ctx context.Context, s *Searcher, selected *selection, order search.Order, cursor string, limit int, trim func(*T)) (*Result[T], error) {
	if err := checkSort(selected, order.Sort); err != nil {
		return nil, err
	}
	after, err := parsePosition(cursor)
	if err != nil {
		return nil, err
	}
	out := &Result[T]{} // not to be read after an error: run may not have ended
	err = s.run(ctx, selected.tenant, func(ctx context.Context, tx *sql.Tx) error {
		p := &planner{selection: selected, bounds: s.bounds, ctx: ctx, tx: tx}
		items, next, err := p.page(pageRequest{order, after, storage.PageLimit(limit)})
		if err != nil {
			return err
		}
		for _, item := range items {
			var record T
			if err := json.Unmarshal(item.doc, &record); err != nil {
				return err
			}
			trim(&record)
			out.Items = append(out.Items, record)
		}
		out.Next = next
		if order.Count {
			out.Count, err = p.count(selected.sorts[order.Sort])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// checkSort refuses a sort key that the table does not have, and rank without words.
func checkSort(s *selection, key string) error {
	switch key {
	case "", search.SortCreated:
		return nil
	case search.SortRank:
		if s.match == "" {
			return api.InvalidField("sort", "can be rank only with q")
		}
		return nil
	}
	if _, known := s.sorts[key]; !known {
		return api.InvalidField("sort", "must be the name of a sort key")
	}
	return nil
}

// jobSelection returns the selection of q. Errors: CodeInvalid, CodeSearchSyntax.
func jobSelection(tenant string, q *search.Jobs) (*selection, error) {
	if err := validateJobs(q); err != nil {
		return nil, err
	}
	s := newSelection(jobs, tenant)
	for _, tag := range q.Tags {
		s.and("EXISTS (SELECT 1 FROM job_tags t WHERE t.tenant = ? AND t.key = ? AND t.value = ? AND t.row = j.row)", tenant, tag.Key, tag.Value)
		s.sources = append(s.sources, source{
			parts:  []fragment{{"job_tags WHERE tenant = ? AND key = ? AND value = ?", []any{tenant, tag.Key, tag.Value}}},
			column: "row",
		})
	}
	s.equal("batch_id", q.Batch, "jobs_batch")
	s.equal("chain_id", q.Chain, "jobs_chain")
	s.equal("parent_id", q.Parent, "jobs_parent")
	s.equal("unique_key", q.UniqueKey, "jobs_unique")
	s.equal("worker_id", q.Worker, "jobs_worker")
	s.equal("function", q.Function, "jobs_function")
	s.equal("host", q.Host, "")
	s.equal("dead_reason", q.DeadReason, "")
	s.equal("namespace", q.Namespace, "")
	among(s, "state", distinct(q.States))
	among(s, "queue", distinct(q.Queues))
	s.created("created_ms", q.Created)
	s.within("started_ms", search.SortStarted, q.Started)
	s.within("ended_ms", search.SortEnded, q.Ended)
	s.within("due_ms", search.SortDue, q.Due)
	if q.Attempts > 0 {
		s.and("j.attempt >= ?", q.Attempts)
	}
	var ranks []int
	for _, p := range q.Priorities {
		if rank := p.Rank(); !slices.Contains(ranks, rank) {
			ranks = append(ranks, rank)
		}
	}
	among(s, "priority", ranks)
	if q.Error != "" {
		s.and("j.error IS NOT NULL")
		s.contains("error", q.Error)
		s.sources = append(s.sources, s.indexed("jobs_failed", fragment{"error IS NOT NULL", nil}))
	}
	s.addStates("queue", distinct(q.Queues), q.Namespace, distinct(q.States), distinct(api.JobStates()))
	return s, s.matching(q.Words)
}

// validateJobs refuses queries out of bounds, and names that do not exist. Errors: CodeInvalid.
func validateJobs(q *search.Jobs) error {
	if len(q.Tags) > search.MaxTags {
		return api.InvalidField("tag", "must be at most 10 tags")
	}
	for _, state := range q.States {
		if !slices.Contains(api.JobStates(), state) {
			return api.InvalidField("state", "must be the name of a job state")
		}
	}
	for _, p := range q.Priorities {
		if p.Rank() < 0 {
			return api.InvalidField("priority", "must be critical, high, normal or low")
		}
	}
	texts := map[string][]string{
		"queue": q.Queues, "namespace": {q.Namespace}, "error": {q.Error}, "worker": {q.Worker}, "host": {q.Host}, "batch": {q.Batch}, "chain": {q.Chain},
		"parent": {q.Parent}, "function": {q.Function}, "unique_key": {q.UniqueKey}, "dead_reason": {q.DeadReason},
	}
	for _, tag := range q.Tags {
		texts["tag."+tag.Key] = []string{tag.Key, tag.Value}
	}
	return validateTexts(texts)
}
