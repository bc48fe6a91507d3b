// Package events keeps the events of each tenant in a stream of the store, in the order in which
// they were appended. The script that changes a resource appends its events, before the change: a
// change without an event cannot be seen, but after a crash of the store in the middle, or a lost
// answer, the event is there twice, or without its change. The enqueue of a job that was interrupted
// has its event when the sweeper completes it.
//
// One entry of the stream has the events of one type of all jobs that a script changed, so that a
// batch costs as much as a job:
//
//	1760000001000-0  type job.completed  queue shop/mail  at 1760000000998
//	                 ids j1 j2 j3
//	                 details {"attempt":1,"worker_id":"w1"}⏎⏎{"attempt":2,"worker_id":"w2"}
//
// The events of an entry are numbered from 0: that of j2 is 1760000001000-0.1. Details are
// event.Detail in JSON, one for each id; an empty one is that of the id before.
// lua/include/event_log.lua writes entries of jobs. lua/include/changes.lua writes those of other
// resources, whose subject begins with the field of:
//
//	1760000002000-0  type version.published  of functions/shop/hello/versions  at 1760000001999
//	                 ids 7  details {"namespace":"shop","function":"hello","version":7}
package events

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
)

// The bounds of a tenant's log.
const (
	// RetentionMS is how long events are kept, in milliseconds.
	RetentionMS = 24 * 60 * 60 * 1000
	// MaxEntries is the largest number of entries that are kept, about. An entry has up to 1,000
	// events.
	MaxEntries = 100_000
	// trimInterval is the least time between two removals of old entries of a tenant, by one
	// process.
	trimInterval = 10 * time.Second
	// maxTrims is the number of tenants of which a process remembers the last removal.
	maxTrims = 4096
	// readEntries and maxReadEntries bound how many entries one command reads: few while it is not
	// known how many events they have.
	readEntries    = 16
	maxReadEntries = 64
	// MaxScan is the largest number of events that Select reads, and scanEvents how many at a
	// time.
	MaxScan    = 10_000
	scanEvents = 1000
)

// The fields of an entry.
const (
	fieldType    = "type"
	fieldQueue   = "queue" // of jobs only
	fieldOf      = "of"    // not of jobs
	fieldAt      = "at"
	fieldIDs     = "ids"
	fieldDetails = "details"
)

// Log reads and trims the events of all tenants. It is safe for concurrent use.
type Log struct {
	s *storage.Store

	mu      sync.Mutex
	trimmed map[string]time.Time // by tenant
}

// New returns the log in s.
func New(s *storage.Store) *Log { return &Log{s: s, trimmed: map[string]time.Time{}} }

// Trim queues commands on pipe that remove old events of tenant, unless this process did so less
// than 10 s ago. A log without new events expires as a whole.
func (l *Log) Trim(ctx context.Context, pipe redis.Pipeliner, tenant string) {
	if !l.trimDue(tenant, time.Now()) {
		return
	}
	key := l.s.JobKeys(tenant).Events()
	pipe.XTrimMinID(ctx, key, strconv.FormatInt(max(0, l.s.NowMS()-RetentionMS), 10))
	pipe.XTrimMaxLen(ctx, key, MaxEntries)
	pipe.PExpire(ctx, key, RetentionMS*time.Millisecond+time.Minute)
}

// Append queues commands on pipe that append a change, before those that make it: for changes that
// no script makes. The result is the command that appends it.
func (l *Log) Append(ctx context.Context, pipe redis.Pipeliner, tenant string, c event.Change) redis.Cmder {
	key := l.s.JobKeys(tenant).Events()
	detail := event.Detail{Data: c.Data, Actor: c.Actor}
	added := pipe.XAdd(ctx, &redis.XAddArgs{Stream: key, MaxLen: MaxEntries, Values: []any{
		fieldType, c.Type, fieldOf, c.Of, fieldAt, c.AtMS, fieldIDs, c.ID, fieldDetails, detail.Text(),
	}})
	pipe.PExpire(ctx, key, RetentionMS*time.Millisecond+time.Minute)
	return added
}

// Record appends a change that no script makes and no pipeline, before it is made. Errors:
// CodeStoreUnavailable, after which the event may be in the log.
func (l *Log) Record(ctx context.Context, tenant string, c event.Change) error {
	pipe := l.s.Client().Pipeline()
	l.Append(ctx, pipe, tenant, c)
	l.Trim(ctx, pipe, tenant)
	_, err := pipe.Exec(ctx)
	return storage.Failure(ctx, "append an event", err)
}

// trimDue reports whether the last removal of tenant's old events was trimInterval ago, and notes
// one at now if so.
func (l *Log) trimDue(tenant string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, known := l.trimmed[tenant]; known && now.Sub(last) < trimInterval {
		return false
	}
	if len(l.trimmed) >= maxTrims {
		clear(l.trimmed)
	}
	l.trimmed[tenant] = now
	return true
}

// Position is a place in a tenant's log: behind the event with that id. "" is the beginning.
type Position string

// sinceSuffix ends the id of the entry of a position of Since: no real one has it.
const sinceSuffix = "-18446744073709551615"

// Since returns the position before the first event that was appended at or after ms, a Unix time
// in milliseconds.
func Since(ms int64) Position {
	if ms <= 0 {
		return ""
	}
	return Position(strconv.FormatInt(ms-1, 10) + sinceSuffix + ".0")
}

// ParsePosition parses the text of a Position. Errors: CodeValidationCursor.
func ParsePosition(text string) (Position, error) {
	if text == "" {
		return "", nil
	}
	if _, _, err := Position(text).split(); err != nil {
		return "", api.Errorf(api.CodeValidationCursor, "the cursor is not the id of an event")
	}
	return Position(text), nil
}

// split returns the id of p's entry and the number of its event in it.
func (p Position) split() (entry string, index int, err error) {
	entry, number, numbered := strings.Cut(string(p), ".")
	ms, sequence, parted := strings.Cut(entry, "-")
	if !numbered || !parted {
		return "", 0, strconv.ErrSyntax
	}
	for _, part := range []string{ms, sequence} { // unsigned: the store refuses a sign
		if _, err := strconv.ParseUint(part, 10, 64); err != nil {
			return "", 0, err
		}
	}
	event, err := strconv.ParseUint(number, 10, 31)
	return entry, int(event), err
}

// Compare returns -1, 0 or 1, as p is before other in the log, at the same place, or behind it. The
// beginning is before all. Parts of a text that are no numbers count as 0.
func (p Position) Compare(other Position) int {
	a, b := p.numbers(), other.numbers()
	return slices.Compare(a[:], b[:])
}

// numbers returns the time, the sequence number and the number of the event of p.
func (p Position) numbers() (out [3]uint64) {
	entry, number, _ := strings.Cut(string(p), ".")
	ms, sequence, _ := strings.Cut(entry, "-")
	for i, part := range []string{ms, sequence, number} {
		n, err := strconv.ParseUint(part, 10, 64)
		if err == nil {
			out[i] = n
		}
	}
	return out
}

// settled returns the position at the begin of p's millisecond, which does not depend on an entry
// that may be removed.
func (p Position) settled() Position {
	text, _, _ := strings.Cut(string(p), "-")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return p
	}
	return Since(ms)
}

// Page is a part of a log.
type Page struct {
	Events []event.Event
	Next   Position // behind the last event that was read
	More   bool     // there may be more behind Next now
	// Gap reports that events behind the position that was asked for may be missing: the event
	// there is not kept any more, or an entry is damaged.
	Gap bool
	// Damaged are the ids of entries that could not be decoded. Their events are left out.
	Damaged []string
}

// Read returns the events behind from, at most limit of them. Errors: CodeStoreUnavailable.
func (l *Log) Read(ctx context.Context, tenant string, from Position, limit int) (*Page, error) {
	page := &Page{Next: from}
	start, index := "-", -1
	if from != "" {
		var err error
		start, index, err = from.split()
		if err != nil {
			return nil, err
		}
	}
	count, first := readEntries, from != "" && !strings.HasSuffix(start, sinceSuffix)
	for {
		entries, err := storage.StreamEntries(l.s.Client().Do(ctx, "XRANGE", l.s.JobKeys(tenant).Events(), start, "+", "COUNT", count))
		if err != nil {
			return nil, storage.Failure(ctx, "read events", err)
		}
		if first && (len(entries) == 0 || entries[0].ID != start) {
			page.Gap, page.Next = true, from.settled() // or each later read would report the gap again
		}
		first = false
		for i := range entries {
			skip := 0
			if entries[i].ID == start {
				skip = index + 1
			}
			page.add(tenant, &entries[i], skip, limit)
			if len(page.Events) == limit {
				page.More = page.More || i+1 < len(entries) || len(entries) == count
				return page, nil
			}
		}
		if len(entries) < count {
			return page, l.settle(ctx, tenant, page)
		}
		start = "(" + entries[len(entries)-1].ID
		count = min(maxReadEntries, max(readEntries, (limit-len(page.Events))*count/max(1, len(page.Events))))
	}
}

// settle moves the end of a page without events from a time to the last event before it, so that
// all that wait at the end of a log have the same position.
func (l *Log) settle(ctx context.Context, tenant string, page *Page) error {
	entry, _, _ := strings.Cut(string(page.Next), ".")
	if !strings.HasSuffix(entry, sinceSuffix) {
		return nil
	}
	var err error
	page.Next, err = l.before(ctx, tenant, entry)
	return err
}

// add adds the events of an entry behind the first skip, until p has limit events. A damaged entry
// is left out; it is a gap for a reader that comes to it, not for one that has passed it.
func (p *Page) add(tenant string, entry *storage.StreamEntry, skip, limit int) {
	decoded, err := decode(tenant, entry)
	switch {
	case err != nil && skip == 0:
		p.Gap, p.Damaged = true, append(p.Damaged, entry.ID)
		p.Next = Position(entry.ID + ".0")
	case err == nil && skip < len(decoded):
		decoded = decoded[skip:]
		if room := limit - len(p.Events); len(decoded) > room {
			decoded, p.More = decoded[:room], true
		}
		p.Events = append(p.Events, decoded...)
		p.Next = Position(decoded[len(decoded)-1].ID)
	}
}

// Select returns the events behind from that admits accepts, at most limit of them. It reads at
// most MaxScan events: a page may be short, even empty, with More set. Errors:
// CodeStoreUnavailable.
func (l *Log) Select(ctx context.Context, tenant string, from Position, limit int, admits func(*event.Event) bool) (*Page, error) {
	out := &Page{Next: from}
	for left, want := MaxScan, limit; ; want = scanEvents {
		read, err := l.Read(ctx, tenant, out.Next, min(left, want))
		if err != nil {
			return nil, err
		}
		out.Next, out.More, out.Gap = read.Next, read.More, out.Gap || read.Gap
		out.Damaged = append(out.Damaged, read.Damaged...)
		for i := range read.Events {
			if e := &read.Events[i]; admits(e) {
				out.Events = append(out.Events, *e)
			}
			if len(out.Events) == limit {
				out.Next, out.More = Position(read.Events[i].ID), read.More || i+1 < len(read.Events)
				return out, nil
			}
		}
		left -= len(read.Events)
		if !out.More || left == 0 {
			return out, nil
		}
	}
}

// End returns the position behind the last event. Errors: CodeStoreUnavailable.
func (l *Log) End(ctx context.Context, tenant string) (Position, error) {
	return l.before(ctx, tenant, "+")
}

// before returns the position behind the last event up to an entry, "+" for all.
func (l *Log) before(ctx context.Context, tenant, entry string) (Position, error) {
	last, err := storage.StreamEntries(l.s.Client().Do(ctx, "XREVRANGE", l.s.JobKeys(tenant).Events(), entry, "-", "COUNT", 1))
	if err != nil || len(last) == 0 {
		return "", storage.Failure(ctx, "read events", err)
	}
	return Position(last[0].ID + "." + strconv.Itoa(strings.Count(last[0].Fields[fieldIDs], " "))), nil
}

// decode returns the events of an entry.
func decode(tenant string, entry *storage.StreamEntry) ([]event.Event, error) {
	ms, err := strconv.ParseInt(entry.Fields[fieldAt], 10, 64)
	if err != nil {
		return nil, api.Wrap(api.CodeInternal, err, "decode event "+entry.ID)
	}
	ids, details := strings.Fields(entry.Fields[fieldIDs]), strings.Split(entry.Fields[fieldDetails], "\n")
	if len(ids) == 0 {
		return nil, api.Errorf(api.CodeInternal, "event %s has no ids", entry.ID)
	}
	of, common := ownerOf(entry)
	at := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
	out := make([]event.Event, len(ids))
	detail := common
	for i, id := range ids {
		if i < len(details) && details[i] != "" {
			detail = common
			if err := json.Unmarshal([]byte(details[i]), &detail); err != nil {
				return nil, api.Wrap(api.CodeInternal, err, "decode event "+entry.ID)
			}
		}
		out[i] = event.Event{
			SpecVersion: "1.0", ID: entry.ID + "." + strconv.Itoa(i), Source: "/v1/tenants/" + tenant,
			Type: entry.Fields[fieldType], Subject: of + "/" + id, Time: at, Actor: detail.Actor, Data: detail.Data,
		}
	}
	return out, nil
}

// ownerOf returns the subject of an entry's events without the id, and the part of their details
// that the entry states once.
func ownerOf(entry *storage.StreamEntry) (of string, common event.Detail) {
	if of := entry.Fields[fieldOf]; of != "" {
		return of, common
	}
	common.Namespace, common.Queue, _ = strings.Cut(entry.Fields[fieldQueue], "/")
	common.Function = event.FunctionOf(common.Queue)
	return event.KindJobs, common
}
