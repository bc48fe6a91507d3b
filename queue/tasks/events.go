package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/statestore/kvrocks"
)

// The streams of a task type, one for each kind of event.
const (
	eventProgress = "progress" // creations, claims, steps, and returns to pending
	eventTerminal = "terminal" // ends
)

const (
	eventsKept      = 10_000 // in each stream
	eventsRetention = api.TaskRetentionMS * time.Millisecond
)

// event returns the event of the change from before, nil for none, to r: the task without its
// payload, and, unless the change is a step, its entry in the tenant's log.
func (t *Tasks) event(ctx context.Context, before, r *record) (kvrocks.Event, error) {
	task := r.Task
	task.Payload = nil
	body, err := api.EncodeJSON(task)
	if err != nil {
		return kvrocks.Event{}, fmt.Errorf("encode a task: %w", err)
	}
	kind := eventProgress
	if r.State.Terminal() {
		kind = eventTerminal
	}
	e := kvrocks.Event{
		Stream: t.store.TaskEvents(r.tenant, r.TaskType, kind), Length: eventsKept, TTL: eventsRetention, AtMS: r.UpdatedAtMS, Body: body,
	}
	if of := changeType(before, r); of != "" {
		change := event.Change{Type: of, Of: event.KindTasks + "/" + r.TaskType, ID: r.TaskID, AtMS: r.UpdatedAtMS, Actor: event.ActorOf(ctx), Data: event.Data{
			Namespace: r.Namespace, Queue: r.Queue, Function: event.FunctionOf(r.Queue), WorkerID: r.Worker, Error: event.Shorten(r.Error), JobID: r.JobID,
		}}
		e.Log, e.Change = t.store.JobKeys(r.tenant).Events(), change.Text()
	}
	return e, nil
}

// changeType returns the type of the event of a change, "" for one that has none: a step.
func changeType(before, after *record) string {
	switch {
	case before == nil:
		return event.TaskCreated
	case before.State == after.State:
		return ""
	}
	return map[api.TaskState]string{
		api.TaskPending: event.TaskRepublished, api.TaskClaimed: event.TaskClaimed,
		api.TaskCompleted: event.TaskCompleted, api.TaskFailed: event.TaskFailed, api.TaskCancelled: event.TaskCancelled,
	}[after.State]
}

// publish writes after in place of r, with an event in the same step, and reports whether r
// was as expected. A report of the same step, by which a worker shows that it is alive, has no
// event. The bytes of the event of a step count: a task has any number of steps. The quotas of the
// other events were taken when the task was created. Error: CodeTenantRate.
func (t *Tasks) publish(ctx context.Context, r, after *record) (bool, error) {
	if after.State == r.State && after.CurrentStep == r.CurrentStep && after.StepCount == r.StepCount {
		return t.states.CompareAndSet(ctx, t.key(r), r.version(), r.changes(after))
	}
	e, err := t.event(ctx, r, after)
	if err == nil && after.State == api.TaskRunning && t.store.Quotas() != nil {
		err = t.store.Quotas().Enqueue(ctx, r.tenant, 0, int64(len(e.Body)))
	}
	if err != nil {
		return false, err
	}
	return t.states.CompareAndPublish(ctx, t.key(r), r.version(), r.changes(after), e)
}

// Position is a position in the events of a task type: the ids of the last entries that were
// read of its two streams. The zero value is the beginning.
type Position struct{ progress, terminal string }

// String returns p as text, such as 1760000000000-0,1760000000500-2.
func (p Position) String() string { return p.progress + "," + p.terminal }

// in returns the id of the last entry of a stream that was read.
func (p *Position) in(kind string) *string {
	if kind == eventProgress {
		return &p.progress
	}
	return &p.terminal
}

// ParsePosition parses the result of String. Error: CodeValidationCursor.
func ParsePosition(s string) (Position, error) {
	progress, terminal, ok := strings.Cut(s, ",")
	if !ok || !isEntryID(progress) || !isEntryID(terminal) {
		return Position{}, api.Errorf(api.CodeValidationCursor, "%q is not the id of an event of tasks", s)
	}
	return Position{progress, terminal}, nil
}

// isEntryID reports whether s can be the id of an entry: two numbers and a hyphen, or "" for
// none.
func isEntryID(s string) bool {
	_, _, ok := entryID(s)
	return ok
}

func entryID(s string) (ms, sequence uint64, ok bool) {
	if s == "" {
		return 0, 0, true
	}
	first, second, ok := strings.Cut(s, "-")
	ms, err := strconv.ParseUint(first, 10, 64)
	if err != nil || !ok {
		return 0, 0, false
	}
	sequence, err = strconv.ParseUint(second, 10, 64)
	return ms, sequence, err == nil
}

// Event is a change of a task.
type Event struct {
	Task     api.Task // without its payload
	Position Position // behind it
}

// Latest returns the position behind all events of a task type.
func (t *Tasks) Latest(ctx context.Context, tenant, taskType string) (p Position, err error) {
	for _, kind := range []string{eventProgress, eventTerminal} {
		last, err := storage.StreamEntries(t.store.Client().Do(ctx, "XREVRANGE", t.store.TaskEvents(tenant, taskType, kind), "+", "-", "COUNT", 1))
		if err != nil {
			return p, storage.Failure(ctx, "read the events of tasks", err)
		}
		if len(last) > 0 {
			*p.in(kind) = last[0].ID
		}
	}
	return p, nil
}

// EventsPage is the largest number of events that Events returns.
const EventsPage = 500

// Events returns the events of a task type behind a position, in the order of their times. It
// returns EventsPage of them if there are more. An event may be there twice, after a crash of
// the store; updated_at_ms of its task identifies it.
func (t *Tasks) Events(ctx context.Context, tenant, taskType string, from Position) ([]Event, error) {
	type entry struct {
		storage.StreamEntry
		kind string
	}
	var entries []entry
	for _, kind := range []string{eventProgress, eventTerminal} {
		start := "-"
		if after := *from.in(kind); after != "" {
			start = "(" + after
		}
		found, err := storage.StreamEntries(t.store.Client().Do(ctx, "XRANGE", t.store.TaskEvents(tenant, taskType, kind), start, "+", "COUNT", EventsPage))
		if err != nil {
			return nil, storage.Failure(ctx, "read the events of tasks", err)
		}
		for _, e := range found {
			entries = append(entries, entry{e, kind})
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return compareEntries(a.ID, b.ID) })
	var out []Event
	at := from
	for _, e := range entries[:min(len(entries), EventsPage)] {
		*at.in(e.kind) = e.ID
		change := Event{Position: at}
		if err := json.Unmarshal([]byte(e.Fields["event"]), &change.Task); err != nil {
			return nil, fmt.Errorf("decode event %s of tasks: %w", e.ID, err)
		}
		out = append(out, change)
	}
	return out, nil
}

// compareEntries compares the ids of two entries.
func compareEntries(a, b string) int {
	aMS, aSequence, _ := entryID(a)
	bMS, bSequence, _ := entryID(b)
	return cmp.Or(cmp.Compare(aMS, bMS), cmp.Compare(aSequence, bSequence))
}
