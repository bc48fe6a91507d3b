package queue

import (
	"context"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// Heartbeat extends leases and keeps what the workers tell. An outcome with
// CodeJobLeaseLost tells the worker to stop; its State says whether the job was
// cancelled.
func (b *Broker) Heartbeat(ctx context.Context, tenant string, beats []api.JobHeartbeat) ([]api.JobOutcome, error) {
	if err := checkCount(len(beats)); err != nil {
		return nil, err
	}
	out := make([]api.JobOutcome, len(beats))
	ids, epochs := make([]string, len(beats)), make([]int64, len(beats))
	for i := range beats {
		ids[i], epochs[i] = beats[i].ID, beats[i].LeaseEpoch
	}
	briefs, err := b.jobs.Summaries(ctx, tenant, ids, epochs)
	if err != nil {
		return nil, err
	}
	groups, places := map[jobstore.Queue][]*api.JobHeartbeat{}, map[jobstore.Queue][]int{}
	for i := range beats {
		known := briefs[beats[i].ID]
		err := checkBeat(&beats[i])
		if err == nil && known == nil {
			err = jobstore.NotFound(beats[i].ID)
		}
		if err != nil {
			out[i] = refused(beats[i].ID, err)
			continue
		}
		q := jobstore.Queue{Tenant: tenant, Namespace: known.Namespace, Name: known.Queue}
		groups[q] = append(groups[q], &beats[i])
		places[q] = append(places[q], i)
	}
	for q, group := range groups {
		answers, err := b.beat(ctx, q, group)
		if err != nil {
			return nil, err
		}
		for k, answer := range answers {
			out[places[q][k]] = answer
		}
	}
	return out, nil
}

func checkBeat(h *api.JobHeartbeat) error {
	switch {
	case h.LeaseMS != 0 && (h.LeaseMS < api.MinLeaseMS || h.LeaseMS > api.MaxLeaseMS):
		return api.InvalidField("lease_ms", "must be from "+strconv.Itoa(api.MinLeaseMS)+" to "+strconv.Itoa(api.MaxLeaseMS))
	case len(h.Checkpoint) > api.MaxCheckpointBytes:
		return api.Errorf(api.CodeBodyLimit, "the checkpoint exceeds %d bytes", api.MaxCheckpointBytes)
	case h.Progress != nil && len(h.Progress.Message) > api.MaxProgressMessage:
		return api.InvalidField("progress.message", "is too long")
	}
	return nil
}

// beat extends the leases of jobs of one queue.
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
