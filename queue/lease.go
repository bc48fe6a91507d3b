package queue

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
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
	briefs, err := b.briefsOf(ctx, tenant, ids, epochs)
	if err != nil {
		return nil, err
	}
	groups, places := map[queueKey][]*api.JobHeartbeat{}, map[queueKey][]int{}
	for i := range beats {
		known := briefs[beats[i].ID]
		err := checkBeat(&beats[i])
		if err == nil && known == nil {
			err = jobNotFound(beats[i].ID)
		}
		if err != nil {
			out[i] = refused(beats[i].ID, err)
			continue
		}
		q := queueKey{tenant, known.namespace, known.queue}
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
		return fieldError("lease_ms", "must be from "+strconv.Itoa(api.MinLeaseMS)+" to "+strconv.Itoa(api.MaxLeaseMS))
	case len(h.Checkpoint) > api.MaxCheckpointBytes:
		return api.Errorf(api.CodeBodyLimit, "the checkpoint exceeds %d bytes", api.MaxCheckpointBytes)
	case h.Progress != nil && len(h.Progress.Message) > api.MaxProgressMessage:
		return fieldError("progress.message", "is too long")
	}
	return nil
}

// beat runs the script on jobs of one queue.
func (b *Broker) beat(ctx context.Context, q queueKey, beats []*api.JobHeartbeat) ([]api.JobOutcome, error) {
	now := b.store.NowMS()
	tenant := b.store.JobKeys(q.tenant)
	keys := []string{b.keys(q).Set(string(api.JobActive))}
	args := []any{len(beats)}
	ends, soonest := make([]int64, len(beats)), int64(0)
	for i, h := range beats {
		lease := h.LeaseMS
		if lease == 0 {
			lease = api.DefaultLeaseMS
		}
		ends[i] = now + lease
		if soonest == 0 || ends[i] < soonest {
			soonest = ends[i]
		}
		progress := ""
		if h.Progress != nil {
			raw, err := api.EncodeJSON(h.Progress)
			if err != nil {
				return nil, api.Wrap(api.CodeInternal, err, "encode progress")
			}
			progress = string(raw)
		}
		keys = append(keys, tenant.Run(h.ID))
		args = append(args, h.ID, h.LeaseEpoch, ends[i], progress, string(h.Checkpoint))
	}
	for _, h := range beats {
		keys = append(keys, tenant.Meta(h.ID))
	}
	reply, err := b.store.ScriptThen(ctx, storage.ScriptJobHeartbeat, keys, args, func(pipe redis.Pipeliner) {
		b.markDue(ctx, pipe, q, soonest)
	})
	if err != nil {
		return nil, err
	}
	out := make([]api.JobOutcome, len(beats))
	for i, word := range texts(reply) {
		if out[i] = b.settled(beats[i].ID, word, api.JobActive); out[i].OK {
			out[i].LeaseExpiresMS = ends[i]
		}
	}
	return out, nil
}
