package events

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// Subjects are the last parts of the subjects of an entry's events, such as the ids of jobs, without
// the rest of the events.
type Subjects struct {
	// Of is the subject without its last part, such as jobs.
	Of string
	// Queue is the queue of jobs as namespace/queue, else "".
	Queue string
	IDs   []string
	AtMS  int64 // when the store appended the entry
}

// SubjectsPage is a part of a log.
type SubjectsPage struct {
	Entries []Subjects
	Next    Position // behind the last entry that was read
	More    bool     // there may be more behind Next now
	Gap     bool     // entries behind the position that was asked for may be missing
}

// ReadSubjects returns the subjects of whole entries behind from, which must be the position of the
// last event of an entry, of Since or "". It ends with the entry with which it has limit ids. It
// decodes no details, so it is for readers that look at the resources anyway. Errors:
// CodeStoreUnavailable.
func (l *Log) ReadSubjects(ctx context.Context, tenant string, from Position, limit int) (*SubjectsPage, error) {
	page, start := &SubjectsPage{Next: from}, "-"
	if from != "" {
		var err error
		start, _, err = from.split()
		if err != nil {
			return nil, err
		}
	}
	first := from != "" && !strings.HasSuffix(start, sinceSuffix)
	for count, ids := readEntries, 0; ; {
		entries, err := storage.StreamEntries(l.s.Client().Do(ctx, "XRANGE", l.s.JobKeys(tenant).Events(), start, "+", "COUNT", count))
		if err != nil {
			return nil, storage.Failure(ctx, "read events", err)
		}
		if first && (len(entries) == 0 || entries[0].ID != start) {
			page.Gap, page.Next = true, from.settled() // or each later read would report the gap again
		}
		first = false
		for i := range entries {
			if entries[i].ID == start {
				continue
			}
			ids += page.addSubjects(&entries[i])
			if ids >= limit {
				page.More = i+1 < len(entries) || len(entries) == count
				return page, nil
			}
		}
		if len(entries) < count {
			return page, nil
		}
		start = "(" + entries[len(entries)-1].ID
		count = min(maxReadEntries, max(readEntries, (limit-ids)*count/max(1, ids)))
	}
}

// addSubjects adds an entry and returns how many ids it has. A damaged entry has none, and is a gap.
func (p *SubjectsPage) addSubjects(entry *storage.StreamEntry) int {
	ids := strings.Fields(entry.Fields[fieldIDs])
	p.Next = Position(entry.ID + "." + strconv.Itoa(max(0, len(ids)-1)))
	if len(ids) == 0 {
		p.Gap = true
		return 0
	}
	of, _ := ownerOf(entry)
	ms, _, _ := strings.Cut(entry.ID, "-")
	at, _ := strconv.ParseInt(ms, 10, 64) // the store made it
	p.Entries = append(p.Entries, Subjects{Of: of, Queue: entry.Fields[fieldQueue], IDs: ids, AtMS: at})
	return len(ids)
}

// newsTenants is how many logs one command of News reads.
const newsTenants = 128

// News returns those of the tenants whose logs have entries behind their positions, and the number of
// commands that it took: one for 128 tenants, or one for each on a cluster. Errors:
// CodeStoreUnavailable.
func (l *Log) News(ctx context.Context, positions map[string]Position) (tenants []string, commands int, err error) {
	size := newsTenants
	if _, cluster := l.s.Client().(*redis.ClusterClient); cluster {
		size = 1 // the logs of two tenants may be on two servers
	}
	pipe, of := l.s.Client().Pipeline(), map[string]string{}
	var replies []*redis.Cmd
	for part := range slices.Chunk(slices.Sorted(maps.Keys(positions)), size) {
		args := []any{"XREAD", "COUNT", 1, "STREAMS"}
		for _, tenant := range part {
			key := l.s.JobKeys(tenant).Events()
			of[key] = tenant
			args = append(args, key)
		}
		for _, tenant := range part {
			entry, _, _ := strings.Cut(string(positions[tenant]), ".")
			if entry == "" {
				entry = "0-0"
			}
			args = append(args, entry)
		}
		replies = append(replies, pipe.Do(ctx, args...))
	}
	if len(replies) == 0 {
		return nil, 0, nil
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, len(replies), storage.Failure(ctx, "read events", err)
	}
	for _, reply := range replies {
		streams, err := reply.Slice()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, len(replies), storage.Failure(ctx, "read events", err)
		}
		for _, stream := range streams {
			pair, _ := stream.([]any)
			if len(pair) != 2 {
				continue
			}
			key, _ := pair[0].(string)
			if tenant := of[key]; tenant != "" {
				tenants = append(tenants, tenant)
			}
		}
	}
	return tenants, len(replies), nil
}
