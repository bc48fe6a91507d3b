package jobstore

import (
	"context"
	"errors"
	"strings"

	"github.com/codesous/sous/storage"
)

// headersAtOnce is the maximum number of headers that one script reads. A script blocks the
// store's other clients while it runs.
const headersAtOnce = 50

// Header is the part of a job that locates it. job_summary.lua reads it without the job's
// payload, which may be large. Repairs compare it with the sets that list the job.
type Header struct {
	ID         string
	Stored     string // the stored run, "" if the job does not exist
	Prefix     string // the beginning of its stored spec, which names its queue
	Run        Run
	Unreadable bool // the job exists, but its run or queue cannot be decoded
}

// Headers returns the headers of a tenant's jobs, in the order of ids. Errors:
// CodeStoreUnavailable.
func (s *Store) Headers(ctx context.Context, tenant string, ids []string) ([]Header, error) {
	jobs := make([]Key, len(ids))
	for i, id := range ids {
		jobs[i] = Key{tenant, id}
	}
	return s.HeadersOf(ctx, jobs)
}

// HeadersOf returns the headers of jobs of any tenants, in their order. One script reads
// consecutive jobs of one tenant. Errors: CodeStoreUnavailable.
func (s *Store) HeadersOf(ctx context.Context, jobs []Key) ([]Header, error) {
	var calls []storage.ScriptCall
	for from := 0; from < len(jobs); {
		to := from + 1
		for to < len(jobs) && to-from < headersAtOnce && jobs[to].Tenant == jobs[from].Tenant {
			to++
		}
		call := storage.ScriptCall{Args: []any{to - from}}
		for _, j := range jobs[from:to] {
			call.Keys = append(call.Keys, s.store.JobKeys(j.Tenant).Run(j.ID))
		}
		for _, j := range jobs[from:to] {
			call.Keys = append(call.Keys, s.store.JobKeys(j.Tenant).Spec(j.ID))
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
			g := Header{ID: jobs[len(out)].ID, Stored: words[i], Prefix: words[i+1]}
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

// Queue returns the queue that the job's spec names. ok is false if the spec does not begin
// as EncodeSpec writes it. tenant is the tenant of the job, which the spec does not name.
func (g *Header) Queue(tenant string) (q Queue, ok bool) {
	words := strings.Split(g.Prefix, `"`)
	if len(words) != 9 { // {"namespace":"ns","queue":"q",
		return Queue{}, false
	}
	q = Queue{tenant, words[3], words[7]}
	return q, SpecPrefix(q) == g.Prefix
}
