package search

import (
	"slices"
	"strings"

	"github.com/codesous/sous/api"
)

// Selection is a query of jobs as a body of JSON, without an order.
type Selection struct {
	Namespace     string            `json:"namespace,omitempty" doc:"default: all that the caller may enter"`
	States        []api.JobState    `json:"state,omitempty" nullable:"false" doc:"only these states"`
	Queues        []string          `json:"queue,omitempty" nullable:"false" doc:"only these queues"`
	Tags          map[string]string `json:"tags,omitempty" doc:"only those with all of these tags"`
	Words         string            `json:"q,omitempty" doc:"full-text query"`
	Error         string            `json:"error,omitempty" doc:"only those whose last error has this text"`
	Worker        string            `json:"worker,omitempty"`
	Host          string            `json:"host,omitempty"`
	Batch         string            `json:"batch,omitempty"`
	Chain         string            `json:"chain,omitempty"`
	Parent        string            `json:"parent,omitempty"`
	Function      string            `json:"function,omitempty"`
	UniqueKey     string            `json:"unique_key,omitempty"`
	DeadReason    string            `json:"dead_reason,omitempty"`
	Priorities    []api.Priority    `json:"priority,omitempty" nullable:"false" doc:"only these priorities"`
	Attempts      int               `json:"attempts,omitempty" minimum:"0" doc:"only those with at least so many attempts"`
	CreatedFromMS int64             `json:"created_from_ms,omitempty" minimum:"0"`
	CreatedToMS   int64             `json:"created_to_ms,omitempty" minimum:"0"`
	StartedFromMS int64             `json:"started_from_ms,omitempty" minimum:"0"`
	StartedToMS   int64             `json:"started_to_ms,omitempty" minimum:"0"`
	EndedFromMS   int64             `json:"ended_from_ms,omitempty" minimum:"0"`
	EndedToMS     int64             `json:"ended_to_ms,omitempty" minimum:"0"`
	DueFromMS     int64             `json:"due_from_ms,omitempty" minimum:"0"`
	DueToMS       int64             `json:"due_to_ms,omitempty" minimum:"0"`
}

// Jobs returns the query of s.
func (s *Selection) Jobs() Jobs {
	q := Jobs{
		Namespace: s.Namespace, States: s.States, Queues: s.Queues, Words: s.Words, Error: s.Error, Worker: s.Worker, Host: s.Host, Batch: s.Batch,
		Chain: s.Chain, Parent: s.Parent, Function: s.Function, UniqueKey: s.UniqueKey, DeadReason: s.DeadReason, Priorities: s.Priorities, Attempts: s.Attempts,
		Created: Range{s.CreatedFromMS, s.CreatedToMS}, Started: Range{s.StartedFromMS, s.StartedToMS}, Ended: Range{s.EndedFromMS, s.EndedToMS}, Due: Range{s.DueFromMS, s.DueToMS},
	}
	for key, value := range s.Tags {
		q.Tags = append(q.Tags, Tag{key, value})
	}
	slices.SortFunc(q.Tags, func(a, b Tag) int { return strings.Compare(a.Key, b.Key) })
	return q
}

// Selection returns q without its order. Of tags with one key the last one counts.
func (q Jobs) Selection() Selection {
	s := Selection{
		Namespace: q.Namespace, States: q.States, Queues: q.Queues, Words: q.Words, Error: q.Error, Worker: q.Worker, Host: q.Host, Batch: q.Batch,
		Chain: q.Chain, Parent: q.Parent, Function: q.Function, UniqueKey: q.UniqueKey, DeadReason: q.DeadReason, Priorities: q.Priorities, Attempts: q.Attempts,
		CreatedFromMS: q.Created.FromMS, CreatedToMS: q.Created.ToMS, StartedFromMS: q.Started.FromMS, StartedToMS: q.Started.ToMS,
		EndedFromMS: q.Ended.FromMS, EndedToMS: q.Ended.ToMS, DueFromMS: q.Due.FromMS, DueToMS: q.Due.ToMS,
	}
	for _, tag := range q.Tags {
		if s.Tags == nil {
			s.Tags = map[string]string{}
		}
		s.Tags[tag.Key] = tag.Value
	}
	return s
}

// Matches reports whether a job matches q, but for the words of the full-text query, which only the
// mirror can look up.
func (q *Jobs) Matches(job *api.Job) bool {
	for _, pair := range [][2]string{
		{q.Namespace, job.Namespace}, {q.Worker, job.WorkerID}, {q.Host, job.Host}, {q.Batch, job.BatchID}, {q.Chain, job.ChainID},
		{q.Parent, job.ParentID}, {q.Function, FunctionOf(job)}, {q.UniqueKey, job.UniqueKey}, {q.DeadReason, job.DeadReason},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	for _, tag := range q.Tags {
		if value, has := job.Tags[tag.Key]; !has || value != tag.Value {
			return false
		}
	}
	return among(q.States, job.State) && among(q.Queues, job.Queue) &&
		(len(q.Priorities) == 0 || slices.ContainsFunc(q.Priorities, func(p api.Priority) bool { return p.Rank() == job.Priority.Rank() })) &&
		job.Attempt >= q.Attempts &&
		(q.Error == "" || strings.Contains(lower(LastError(job)), lower(q.Error))) &&
		q.Created.has(job.CreatedAtMS) && q.Started.has(job.StartedAtMS) && q.Ended.has(job.EndedAtMS) && q.Due.has(job.DueAtMS)
}

// among reports whether value is one of values, or there are none.
func among[T comparable](values []T, value T) bool {
	return len(values) == 0 || slices.Contains(values, value)
}

// has reports whether r selects ms, where 0 is no time.
func (r Range) has(ms int64) bool {
	return r.Empty() || ms > 0 && ms >= r.FromMS && (r.ToMS == 0 || ms < r.ToMS)
}

// lower returns text with its ASCII letters in lower case, as the mirror compares.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// FunctionOf returns the name of the function that a job calls, "" for none.
func FunctionOf(j *api.Job) string {
	if j.Target != nil && j.Target.Function != "" {
		return j.Target.Function
	}
	name, found := strings.CutPrefix(j.Queue, api.FunctionQueuePrefix)
	if !found {
		return ""
	}
	return name
}

// LastError returns the error of the last attempt that failed, "" for none.
func LastError(j *api.Job) string {
	if len(j.Errors) == 0 {
		return ""
	}
	return j.Errors[len(j.Errors)-1].Error
}
