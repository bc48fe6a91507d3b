package queue

import (
	"cmp"
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/account"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Heartbeat extends the leases of jobs and stores the progress and checkpoints that their
// workers report. Each job has its own outcome, in order. An outcome with CodeJobLeaseLost
// means that the worker must stop; its State is JobCancelled if the job was cancelled. Other
// codes: CodeInvalid, CodeBodyLimit, CodeJobNotFound. Errors: CodeInvalid for more than
// api.MaxSettleJobs jobs, CodeStoreUnavailable.
//
// An extended lease expires LeaseMS after the heartbeat, or api.DefaultLeaseMS if LeaseMS is
// 0. The outcome has the moment; see queue/internal/claim for an example of a lease. These are
// the outcomes of a heartbeat of w1 with epoch 3 and a lease of 30 s, sent at 40000:
//
//	run before           meaning                         outcome                run after
//	active 1 3 50000 …   w1 holds the job                OK, until 70000        active 1 3 70000 …
//	active 1 3 39000 …   expired, not yet reclaimed      OK, until 70000        active 1 3 70000 …
//	pending 1 3 39500 …  it was reclaimed                lease lost, pending    the same
//	active 2 4 69000 …   another worker has it           lease lost, active     the same
//	cancelled 1 3 …      an operator cancelled it        lease lost, cancelled  the same
//	none                 the job was deleted             CodeJobNotFound        none
//
// The heartbeats of one queue take one round trip, also for 1000 jobs, and one more if the
// summary of a job is not cached, as on a replica that did not fetch it. If an error is
// returned, some leases may have been extended; a repeat is safe. CodeTenantRate for checkpoints
// over the quota of bytes, beyond which messages of progress are cut to 256 bytes.
func (b *Broker) Heartbeat(ctx context.Context, tenant string, beats []api.JobHeartbeat) ([]api.JobOutcome, error) {
	if err := checkCount(len(beats)); err != nil {
		return nil, err
	}
	out := make([]api.JobOutcome, len(beats))
	ids, epochs, bytes, texts := make([]string, len(beats)), make([]int64, len(beats)), 0, 0
	for i := range beats {
		ids[i], epochs[i] = beats[i].ID, beats[i].LeaseEpoch
		bytes += len(beats[i].Checkpoint)
		if beats[i].Progress != nil {
			texts += len(beats[i].Progress.Message)
		}
	}
	if err := b.admission.Bytes(ctx, tenant, bytes); err != nil {
		return nil, err
	}
	most, err := b.admission.Texts(ctx, tenant, texts)
	if err != nil {
		return nil, err
	}
	summaries, err := b.jobs.Summaries(ctx, tenant, ids, epochs)
	if err != nil {
		return nil, err
	}
	groups, positions := map[jobstore.Queue][]*api.JobHeartbeat{}, map[jobstore.Queue][]int{}
	for i := range beats {
		known := summaries[beats[i].ID]
		err := cmp.Or(beats[i].Validate(), account.CheckUsage(beats[i].Usage, true))
		if err == nil && known == nil {
			err = jobstore.NotFound(beats[i].ID)
		}
		if err != nil {
			out[i] = refused(beats[i].ID, err)
			continue
		}
		if len(beats[i].Usage) > 0 || known.Agent != nil && known.Agent.IterationTimeoutMS > 0 {
			out[i], err = b.beatAccounted(ctx, tenant, shortened(&beats[i], most))
			if err != nil {
				return nil, err
			}
			continue
		}
		q := jobstore.Queue{Tenant: tenant, Namespace: known.Namespace, Name: known.Queue}
		groups[q] = append(groups[q], shortened(&beats[i], most))
		positions[q] = append(positions[q], i)
	}
	for q, group := range groups {
		answers, err := b.beat(ctx, q, group)
		if err != nil {
			return nil, err
		}
		for k, answer := range answers {
			out[positions[q][k]] = answer
		}
	}
	return out, nil
}

// shortened returns h with a message of at most most bytes.
func shortened(h *api.JobHeartbeat, most int) *api.JobHeartbeat {
	if h.Progress == nil || len(h.Progress.Message) <= most {
		return h
	}
	short, progress := *h, *h.Progress
	progress.Message = jobstore.Shorten(progress.Message, most)
	short.Progress = &progress
	return &short
}

// beat extends the leases of jobs of q.
func (b *Broker) beat(ctx context.Context, q jobstore.Queue, beats []*api.JobHeartbeat) ([]api.JobOutcome, error) {
	words, ends, err := b.jobs.Extend(ctx, q, beats)
	if err != nil {
		return nil, err
	}
	out := make([]api.JobOutcome, len(beats))
	for i, word := range words {
		out[i] = b.settled(beats[i].ID, word, api.JobActive)
		if out[i].OK {
			out[i].LeaseExpiresMS = ends[i]
		}
	}
	return out, nil
}
