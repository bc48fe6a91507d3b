package account

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/queue/internal/jobstore"
)

const (
	iterationsAtOnce = 4       // of one read, at most about 1.5 MiB
	iterationBytes   = 4 << 20 // of records, with which a page ends
)

// Iterations returns up to limit iterations of a job, of those behind after, oldest first, and the
// position of the next page, "" at the end. A page also ends with 4 MiB. The last
// agent.KeptIterations that ended are kept. Errors: CodeJobNotFound, CodeStoreUnavailable.
func Iterations(ctx context.Context, jobs *jobstore.Store, tenant, id string, after int64, limit int) (page []agent.Iteration, next string, err error) {
	r, err := jobs.FindWithLedger(ctx, tenant, id)
	if err != nil || r.Spec.Agent == nil {
		return nil, "", err
	}
	first := max(after, r.Ledger.Ended-agent.KeptIterations) + 1
	for bytes := 0; first <= r.Ledger.Ended; {
		if len(page) >= limit || bytes >= iterationBytes {
			return page, strconv.FormatInt(first-1, 10), nil
		}
		last := min(first+iterationsAtOnce-1, first+int64(limit-len(page))-1, r.Ledger.Ended)
		stored, err := jobs.Iterations(ctx, tenant, id, first, last)
		if err != nil {
			return nil, "", err
		}
		for _, text := range stored {
			var it agent.Iteration
			if text == "" { // it is no longer kept
				continue
			}
			if err := json.Unmarshal([]byte(text), &it); err != nil {
				return nil, "", api.Wrap(api.CodeInternal, err, "decode an iteration")
			}
			page, bytes = append(page, it), bytes+len(text)
		}
		first = last + 1
	}
	if current := Current(r); current != nil && current.Iteration > after {
		if len(page) >= limit {
			return page, strconv.FormatInt(r.Ledger.Ended, 10), nil
		}
		page = append(page, *current)
	}
	return page, "", nil
}

// Current returns the iteration of r that has begun and that the ledger does not count as ended, nil
// for none. An ack without usage completes a job without a change of the ledger.
func Current(r *jobstore.Record) *agent.Iteration {
	run := &r.Run
	if r.Spec.Agent == nil || run.Epoch <= r.Ledger.By || run.Attempt == 0 && len(r.Ledger.Lines) == 0 {
		return nil
	}
	it := r.Ledger.Spent()
	describe(&it, run)
	switch run.State {
	case api.JobCompleted:
		it.Status = agent.IterationCompleted
	case api.JobDead:
		it.Status = agent.IterationFailed
	case api.JobCancelled:
		it.Status = agent.IterationCancelled
	default:
		it.Status = agent.IterationRunning
		return &it
	}
	it.EndedAtMS = run.At
	return &it
}

// Describe adds to j, the view of r, what it has spent, and its current or last iteration.
func Describe(r *jobstore.Record, j *api.Job) {
	if r.Ledger.Total.Entries > 0 {
		j.Usage = &r.Ledger.Total
	}
	if r.Spec.Agent == nil {
		return
	}
	j.Iteration = r.Ledger.Ended
	if Current(r) != nil {
		j.Iteration++
	}
}
