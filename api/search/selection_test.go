package search

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
)

// fullQuery has a value in every field.
func fullQuery() Jobs {
	r := Range{1, 2}
	return Jobs{
		Namespace: "n", States: []api.JobState{"dead", "held"}, Queues: []string{"a", "b"}, Tags: []Tag{{"k", "v,w"}, {"l", ""}}, Created: r, Started: r, Ended: r, Due: r,
		Error: "e", Worker: "w", Host: "h", Batch: "b", Chain: "c", Parent: "p", Function: "f", UniqueKey: "u", DeadReason: "fatal", Priorities: []api.Priority{"low"}, Attempts: 2,
		Words: "x y", Order: Order{Sort: SortEnded, Ascending: true, Count: true},
	}
}

// A selection has every filter of a query, and comes back from JSON.
func TestSelectionsAreQueries(t *testing.T) {
	t.Parallel()
	q := fullQuery()
	text, err := json.Marshal(q.Selection())
	if err != nil {
		t.Fatalf("Marshal: %v", err)
	}
	var s Selection
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	got := s.Jobs()
	q.Order = Order{}
	if diff := cmp.Diff(q, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A job matches a query with its values, and no query with another value in one field.
func TestMatches(t *testing.T) {
	t.Parallel()
	job := api.Job{
		Namespace: "n", Queue: "a", State: "dead", WorkerID: "w", Host: "h", ChainID: "c", ParentID: "p", DeadReason: "fatal", Attempt: 2,
		CreatedAtMS: 1, StartedAtMS: 1, EndedAtMS: 1, DueAtMS: 1, Errors: []api.JobError{{Error: "x"}, {Error: "No E"}},
	}
	job.Target, job.UniqueKey, job.BatchID, job.Priority = &api.JobTarget{Function: "f"}, "u", "b", "low"
	job.Tags = map[string]string{"k": "v,w", "l": ""}
	q := fullQuery()
	if !q.Matches(&job) {
		t.Fatal("got no match, want one")
	}
	other := Jobs{
		Namespace: "x", States: []api.JobState{"held"}, Queues: []string{"b"}, Tags: []Tag{{"m", ""}}, Created: Range{FromMS: 2}, Started: Range{ToMS: 1}, Ended: Range{FromMS: 2}, Due: Range{FromMS: 2},
		Error: "x", Worker: "x", Host: "x", Batch: "x", Chain: "x", Parent: "x", Function: "x", UniqueKey: "x", DeadReason: "x", Priorities: []api.Priority{"high"}, Attempts: 3,
	}
	from := reflect.ValueOf(other)
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		if from.Field(i).IsZero() {
			if name != "Words" && name != "Order" {
				t.Errorf("got field %s without another value, want one", name)
			}
			continue
		}
		changed := fullQuery()
		reflect.ValueOf(&changed).Elem().Field(i).Set(from.Field(i))
		if changed.Matches(&job) {
			t.Errorf("got a match with another %s, want none", name)
		}
	}
	if open := (Jobs{Ended: Range{ToMS: 9}}); open.Matches(&api.Job{}) {
		t.Error("got a match of a job without an end, want none")
	}
}
