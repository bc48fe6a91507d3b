package invoker

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// How the recorder persists when the store does not answer: the caller is told
// after one try, which the store bounds; the record is tried again until nobody
// would believe it any more, which is when readers call the activation lost. A
// caller that goes away ends no write.
const (
	recordRetryMin = 100 * time.Millisecond
	recordRetryMax = 2 * time.Second
)

// recorder writes activations: running at the start, terminal at the end.
type recorder struct {
	activations *storage.Activations
	logger      *zap.Logger
	// base outlives every request; close cancels it once late writes had their time.
	base   context.Context //nolint:containedctx // lifetime of the late writes
	giveUp context.CancelFunc
	late   sync.WaitGroup
}

func newRecorder(base context.Context, activations *storage.Activations, logger *zap.Logger) *recorder {
	ctx, giveUp := context.WithCancel(base)
	return &recorder{activations: activations, logger: logger, base: ctx, giveUp: giveUp}
}

// start writes the record as running. existing is what stood under the id if it
// was taken.
func (r *recorder) start(ctx context.Context, rec *storage.StoredActivation) (existing *storage.StoredActivation, err error) {
	created, existing, err := r.activations.Start(context.WithoutCancel(ctx), rec)
	if err != nil || created {
		return nil, err
	}
	return existing, nil
}

// finish writes logs, then the terminal record, by compare-and-set. Where
// another writer ended the activation first (a cancel), that record is given
// back: it is what the caller is told. On an error the writes go on in the
// background, starting with the start where that had failed.
func (r *recorder) finish(ctx context.Context, running, final *storage.StoredActivation, logs *logSink, started error) (*storage.StoredActivation, error) {
	if started == nil {
		current, err := r.try(context.WithoutCancel(ctx), final, logs)
		if err == nil {
			return current, nil
		}
		r.persist(nil, final, logs)
		return nil, err
	}
	r.persist(running, final, logs)
	return nil, started
}

func (r *recorder) try(ctx context.Context, final *storage.StoredActivation, logs *logSink) (*storage.StoredActivation, error) {
	if err := logs.drain(ctx); err != nil {
		return nil, err
	}
	final.LogsTruncated = final.LogsTruncated || logs.truncated()
	won, current, err := r.activations.Finish(ctx, final, final.Attempt)
	switch {
	case err != nil:
		return nil, err
	case won:
		return final, nil
	}
	return current, nil
}

// persist goes on trying in the background until the record is written or would
// be taken for lost anyway.
func (r *recorder) persist(running, final *storage.StoredActivation, logs *logSink) {
	r.late.Add(1)
	go func() {
		defer r.late.Done()
		until := time.UnixMilli(final.DeadlineMS + api.LostGraceMS)
		ctx, cancel := context.WithDeadline(r.base, until)
		defer cancel()
		if err := r.persistUntil(ctx, running, final, logs); err != nil {
			r.logger.Error("an activation's end was not recorded",
				zap.String("tenant", final.Tenant), zap.String("activation_id", final.ActivationID), zap.Error(err))
		}
	}()
}

func (r *recorder) persistUntil(ctx context.Context, running, final *storage.StoredActivation, logs *logSink) error {
	for wait := recordRetryMin; ; wait = min(2*wait, recordRetryMax) {
		err := r.persistOnce(ctx, &running, final, logs)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(wait):
		}
	}
}

func (r *recorder) persistOnce(ctx context.Context, running **storage.StoredActivation, final *storage.StoredActivation, logs *logSink) error {
	if *running != nil {
		if _, _, err := r.activations.Start(ctx, *running); err != nil {
			return err
		}
		*running = nil
	}
	_, err := r.try(ctx, final, logs)
	return err
}

// close waits for late writes until ctx ends, then gives them up.
func (r *recorder) close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		r.late.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.giveUp()
	<-done
	return err
}
