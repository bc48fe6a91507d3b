// Package timeline lists the changes of a job: its events in the tenant's log, and what the record
// of the job has besides, since a queue may record no events, and the log removes old ones.
package timeline

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage/events"
)

const (
	// maxEvents bounds how many events of the log are read, of any job: the first half in the life
	// of the job from its enqueue on, and if that is not enough, the second half around the times
	// that the record has, at most maxSpans of them.
	maxEvents = 10_000
	maxSpans  = 32
	// skewMS bounds the difference between the clocks of the store, by which the entries of the log
	// are found, and of a replica; beforeMS and afterMS that around a time of a busy log.
	skewMS   = 2000
	beforeMS = 250
	afterMS  = 1000
	// sameMS bounds the difference between the times of a change in the record and in its event.
	sameMS = 1000
	// maxEntries bounds the entries of a timeline. The oldest are left out.
	maxEntries = 1000
	// maxAttempts is the number of attempts that the record of a job keeps.
	maxAttempts = 100
)

// Of returns the timeline of j, a job of tenant with its attempts. setting is the setting events of
// its queue, now a Unix time in milliseconds. Errors: CodeStoreUnavailable.
func Of(ctx context.Context, log *events.Log, tenant string, j *api.Job, setting string, now int64) (*event.Timeline, error) {
	kept, err := log.FirstMS(ctx, tenant)
	if err != nil {
		return nil, err
	}
	known := entriesOf(j)
	found, err := search(ctx, log, tenant, j, known, now)
	if err != nil {
		return nil, err
	}
	t := &event.Timeline{}
	var unlogged []event.TimelineEntry
	t.Entries, unlogged = merge(found.Events, known)
	miss := func(reason, detail string) {
		t.Missing = append(t.Missing, event.TimelineGap{Reason: reason, Detail: detail})
	}
	switch setting {
	case event.RecordAll:
	case event.RecordOff:
		miss(event.MissingSetting, "the queue records no events: what its workers and operators did is known as far as the record of the job has it")
	default:
		miss(event.MissingSetting, "the queue records the ends of jobs only: what happened before is known as far as the record of the job has it")
	}
	if j.CreatedAtMS < kept {
		miss(event.MissingTrimmed, "the log has the events since "+time.UnixMilli(kept).UTC().Format(time.RFC3339)+", and the job is older")
	}
	if !found.Whole {
		miss(event.MissingBound, "more than "+api.CountText(maxEvents/2)+" events were recorded in the life of the job: of the later ones, those around the times in its record were read")
	}
	if len(found.Damaged) > 0 {
		miss(event.MissingDamaged, "entries of the log are damaged")
	}
	if len(j.Attempts) >= maxAttempts {
		miss(event.MissingAttempts, "the record of the job keeps its last "+strconv.Itoa(maxAttempts)+" attempts")
	}
	if setting == event.RecordAll && found.Whole && slices.ContainsFunc(unlogged, func(e event.TimelineEntry) bool { return e.AtMS >= kept }) {
		miss(event.MissingUnrecorded, "some changes have no event: the queue recorded fewer events when they were made")
	}
	if len(t.Entries) > maxEntries {
		t.Entries = t.Entries[len(t.Entries)-maxEntries:]
		miss(event.MissingBound, "only the last "+api.CountText(maxEntries)+" changes are shown")
	}
	t.Complete = len(t.Missing) == 0
	return t, nil
}

// search reads the events of j. A log of which too many events fall into its life is read around
// the known changes only, from where the budget was used up.
func search(ctx context.Context, log *events.Log, tenant string, j *api.Job, known []event.TimelineEntry, now int64) (*events.Found, error) {
	end := now
	if j.EndedAtMS > 0 {
		end = j.EndedAtMS
	}
	budget := maxEvents / 2
	out, err := log.Search(ctx, tenant, event.KindJobs, j.ID, events.Span{FromMS: j.CreatedAtMS - skewMS, ToMS: end + skewMS}, &budget)
	if err != nil || out.Whole {
		return out, err
	}
	budget = maxEvents - maxEvents/2
	for _, span := range spansOf(known, out.ReachedMS+1) {
		more, err := log.Search(ctx, tenant, event.KindJobs, j.ID, span, &budget)
		if err != nil {
			return nil, err
		}
		out.Events, out.Damaged = append(out.Events, more.Events...), append(out.Damaged, more.Damaged...)
	}
	return out, nil
}

// spansOf returns the times around known changes from a time on, the last maxSpans of them, apart
// from each other and in their order.
func spansOf(known []event.TimelineEntry, from int64) []events.Span {
	var spans []events.Span
	for i := range known {
		next := events.Span{FromMS: max(from, known[i].AtMS-beforeMS), ToMS: known[i].AtMS + afterMS}
		switch last := len(spans) - 1; {
		case next.ToMS < next.FromMS:
		case last >= 0 && next.FromMS <= spans[last].ToMS+1:
			spans[last].ToMS = max(spans[last].ToMS, next.ToMS)
		default:
			spans = append(spans, next)
		}
	}
	return spans[max(0, len(spans)-maxSpans):]
}

// merge returns the entries of a job's events, and of the known changes that none of them records,
// in their order; unlogged are the latter. An event that is there twice is one entry: a script that
// was sent again has the same time.
func merge(logged []event.Event, known []event.TimelineEntry) (out, unlogged []event.TimelineEntry) {
	out = []event.TimelineEntry{}
	for i := range logged {
		if e := entryOf(&logged[i]); !slices.ContainsFunc(out, func(o event.TimelineEntry) bool {
			return o.Type == e.Type && o.AtMS == e.AtMS && o.Attempt == e.Attempt
		}) {
			out = append(out, e)
		}
	}
	used := map[string]bool{} // ids of the events that record a known change
	from := 0                 // behind the last known change: their order is that of the record
	for i := range known {
		k := &known[i]
		if best := nearest(out, k, used); best >= 0 {
			used[out[best].EventID] = true
			out[best].Host = k.Host // events have none
			from = max(from, best+1)
			continue
		}
		unlogged = append(unlogged, *k)
		at := from
		for at < len(out) && !before(k, &out[at]) {
			at++
		}
		out = slices.Insert(out, at, *k)
		from = at + 1
	}
	return out, unlogged
}

// before reports whether the change k precedes o.
func before(k, o *event.TimelineEntry) bool {
	return k.AtMS < o.AtMS || k.AtMS == o.AtMS && order(k.Type) < order(o.Type)
}

// nearest returns the index of the entry that records the known change k and is not used yet, -1 if
// there is none.
func nearest(out []event.TimelineEntry, k *event.TimelineEntry, used map[string]bool) int {
	best, least := -1, int64(sameMS+1)
	for i := range out {
		o := &out[i]
		if o.Source == event.SourceLog && o.Type == k.Type && o.Attempt == k.Attempt && !used[o.EventID] {
			if apart := max(o.AtMS-k.AtMS, k.AtMS-o.AtMS); apart < least {
				best, least = i, apart
			}
		}
	}
	return best
}

// order returns the order of the changes of one millisecond.
func order(kind string) int {
	return slices.Index([]string{
		event.JobEnqueued, event.JobRevived, event.JobReleased, event.JobStarted, event.JobFailed,
		event.JobRetrying, event.JobContinued, event.JobHeld, event.JobCompleted, event.JobDead, event.JobCancelled,
	}, kind)
}

// entryOf returns the entry of an event of the log.
func entryOf(e *event.Event) event.TimelineEntry {
	at, _ := time.Parse(time.RFC3339, e.Time) // package events wrote it
	return event.TimelineEntry{
		AtMS: at.UnixMilli(), Type: e.Type, Source: event.SourceLog, EventID: e.ID, Actor: e.Actor,
		Attempt: e.Data.Attempt, WorkerID: e.Data.WorkerID, Error: e.Data.Error, Reason: e.Data.Reason,
	}
}
