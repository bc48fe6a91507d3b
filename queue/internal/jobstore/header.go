package jobstore

import (
	"context"
	"errors"
	"strings"

	"github.com/codesous/sous/storage"
)

// headersAtOnce bounds the headers that one script reads.
const headersAtOnce = 50

// Header is where a job stands, read without its payload.
type Header struct {
	Id         string
	Stored     string // of run, "" where there is no such job
	Prefix     string // how its spec begins
	Run        Run
	Unreadable bool // it is there, and cannot be read
}

// Headers reads where jobs stand.
func (s *Store) Headers(ctx context.Context, tenant string, ids []string) ([]Header, error) {
	jobs := make([]Key, len(ids))
	for i, id := range ids {
		jobs[i] = Key{tenant, id}
	}
	return s.HeadersOf(ctx, jobs)
}

// HeadersOf reads where jobs of any tenants stand. Neighbours of one tenant are read
// by one script.
func (s *Store) HeadersOf(ctx context.Context, jobs []Key) ([]Header, error) {
	var calls []storage.ScriptCall
	for from := 0; from < len(jobs); {
		to := from + 1
		for to < len(jobs) && to-from < headersAtOnce && jobs[to].Tenant == jobs[from].Tenant {
			to++
		}
		call := storage.ScriptCall{Args: []any{to - from}}
		for _, j := range jobs[from:to] {
			call.Keys = append(call.Keys, s.store.JobKeys(j.Tenant).Run(j.Id))
		}
		for _, j := range jobs[from:to] {
			call.Keys = append(call.Keys, s.store.JobKeys(j.Tenant).Spec(j.Id))
		}
		calls, from = append(calls, call), to
	}
	replies, errs := s.store.ScriptEach(ctx, storage.ScriptJobSummary, calls)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := make([]Header, 0, len(jobs))
	for _, reply := range replies {
		words := Words(reply)
		for i := 0; i+1 < len(words); i += 2 {
			g := Header{Id: jobs[len(out)].Id, Stored: words[i], Prefix: words[i+1]}
			if g.Stored != "" {
				var err error
				g.Run, err = ParseRun(g.Stored)
				_, known := g.Queue("")
				g.Unreadable = err != nil || !known
			}
			out = append(out, g)
		}
	}
	return out, nil
}

// Queue is the queue that the job names.
func (g *Header) Queue(tenant string) (Queue, bool) {
	words := strings.Split(g.Prefix, `"`)
	if len(words) != 9 { // {"namespace":"ns","queue":"q",
		return Queue{}, false
	}
	q := Queue{tenant, words[3], words[7]}
	return q, SpecPrefix(q) == g.Prefix
}
