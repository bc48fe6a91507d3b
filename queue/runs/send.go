package runs

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/queue/internal/jobstore"
)

const (
	// broadcastMost bounds the runs to which one call of Broadcast sends an event.
	broadcastMost = 10_000
	// broadcastAtOnce bounds those to which it sends the event at the same time.
	broadcastAtOnce = 16
)

// Send sends an event to a run, which has it until it waits for an event of that name, also if it
// does not wait yet. Errors:
// CodeInvalid, CodeBodyLimit, CodeJobNotFound, CodeJobState for a run that has ended,
// CodeCapacityLimit, CodeTenantRate, CodeStoreConflict, CodeStoreUnavailable.
func (r *Runs) Send(ctx context.Context, tenant, id, name string, payload json.RawMessage) error {
	if err := check(name, payload); err != nil {
		return err
	}
	if err := api.ValidateJobID(id); err != nil {
		return err
	}
	return r.deliver(ctx, tenant, id, name, payload)
}

// Broadcast sends an event to the runs of a namespace that wait for it, and returns
// their number. more reports that more than 10,000 wait, of which the others did not get it. A run
// that begins to wait later does not get the event. After an error, some runs may have it. Errors: as
// of Send.
func (r *Runs) Broadcast(ctx context.Context, tenant, namespace, name string, payload json.RawMessage) (delivered int, more bool, err error) {
	if err := check(name, payload); err != nil {
		return 0, false, err
	}
	key := r.store.JobKeys(tenant).Waiters(namespace, name)
	ids, err := r.rdb.ZRange(ctx, key, 0, broadcastMost).Result()
	if err != nil {
		return 0, false, jobstore.Failure(ctx, "read the runs that wait", err)
	}
	more = len(ids) > broadcastMost
	var sent atomic.Int64
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(broadcastAtOnce)
	for _, id := range ids[:min(len(ids), broadcastMost)] {
		calls.Go(func() error {
			err := r.deliver(ctx, tenant, id, name, payload)
			switch api.ErrorCode(err) {
			case api.CodeJobNotFound, api.CodeJobState: // it has ended
				return jobstore.Failure(ctx, "end a wait", r.rdb.ZRem(ctx, key, id).Err())
			case api.CodeCapacityLimit:
				return nil
			}
			if err == nil {
				sent.Add(1)
			}
			return err
		})
	}
	err = calls.Wait()
	return int(sent.Load()), more, err
}

// check checks the name and the payload of an event.
func check(name string, payload json.RawMessage) error {
	if err := ValidateName("name", name); err != nil {
		return err
	}
	if len(payload) > step.MaxResultBytes {
		return api.Errorf(api.CodeBodyLimit, "the payload of an event has %s, the limit is %s", api.SizeText(len(payload)), api.SizeText(step.MaxResultBytes))
	}
	return nil
}

// deliver writes an event into the hash of a job and, if the job sleeps and waits for it, makes the
// job pending in the same write.
func (r *Runs) deliver(ctx context.Context, tenant, id, name string, payload json.RawMessage) error {
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	if err := r.broker.TakeBytes(ctx, tenant, len(payload)); err != nil {
		return err
	}
	waiting, err := r.arrivals(ctx, tenant, id, nil)
	if err != nil {
		return err
	}
	if len(waiting) >= step.MaxEvents {
		return tooMany(id)
	}
	field := eventField(uuid.Must(uuid.NewV7()).String(), name)
	_, err = r.broker.Change(ctx, tenant, id, func(rec *jobstore.Record) (*jobstore.Move, error) {
		state := rec.Run.State
		if state.Terminal() {
			return nil, api.Errorf(api.CodeJobState, "run %s is %s: it takes no events", id, state)
		}
		if state == api.JobScheduled || rec.Run.AwaitsApproval() {
			waits, err := r.waits(ctx, tenant, rec, name)
			if err != nil {
				return nil, err
			}
			if waits {
				return rec.Woken(field, string(payload), r.store.NowMS()), nil
			}
		}
		return rec.Touched(field, string(payload)), nil
	})
	return err
}

// waits reports whether the run of rec waits for an event.
func (r *Runs) waits(ctx context.Context, tenant string, rec *jobstore.Record, name string) (bool, error) {
	err := r.rdb.ZScore(ctx, r.store.JobKeys(tenant).Waiters(rec.Spec.Namespace, name), rec.ID).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return true, jobstore.Failure(ctx, "read a run that waits", err)
}

// ValidateName checks the name of a step or of an event. CodeInvalid.
func ValidateName(path, name string) error {
	if problem := step.CheckName(name); problem != "" {
		return api.InvalidField(path, problem)
	}
	return nil
}
