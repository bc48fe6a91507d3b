package invoker

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/logsink"
	"github.com/codesous/sous/invoker/usage"
	"github.com/codesous/sous/invoker/visibility"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/activity"
)

// Delays between tries when the store does not answer: the first, and the bound of the
// doubled ones. The caller gets its error after one try, which the store bounds. The write
// is repeated in the background until readers would treat the activation as lost,
// api.LostGraceMS after its deadline. A caller that goes away ends no write.
const (
	recordRetryMin = 100 * time.Millisecond
	recordRetryMax = 2 * time.Second
)

// recorder writes the records of activations: as running where they must be visible while
// they run (see visibility), and as terminal at the end.
//
//	absent --start, claim--> running --finish (compare-and-set)--> terminal
//	absent --finish (set if absent)------------------------------> terminal
//
// A terminal record never changes. Whichever writer ends an activation first wins: the run
// itself, a cancel, or a reader that finds it lost.
type recorder struct {
	activations *activations.Repository
	ran         *activity.Notices
	logger      *zap.Logger
	// base outlives every request; close cancels it after waiting for late writes.
	base   context.Context
	giveUp context.CancelFunc
	late   sync.WaitGroup

	metrics usage.Late
	mu      sync.Mutex
	pending map[*activations.Record]time.Time // late records, and since when
}

func newRecorder(base context.Context, records *activations.Repository, ran *activity.Notices, logger *zap.Logger) *recorder {
	ctx, giveUp := context.WithCancel(base)
	return &recorder{
		activations: records, ran: ran, logger: logger, base: ctx, giveUp: giveUp,
		metrics: usage.NewLate(), pending: map[*activations.Record]time.Time{},
	}
}

// start writes the record of a random id as running. Only visibility calls it, at most once
// for an activation. A record that is stored already counts as written, since the id is
// this activation's own.
func (r *recorder) start(ctx context.Context, rec *activations.Record) error {
	_, _, err := r.activations.Start(context.WithoutCancel(ctx), rec)
	r.note(rec)
	return err
}

// note tells the mirrors that the function of rec ran.
func (r *recorder) note(rec *activations.Record) {
	r.ran.Note(activity.Function{Tenant: rec.Tenant, Namespace: rec.Namespace, Name: rec.Function})
}

// claim writes the record of a derived id as running. existing is the record under the id
// if it was taken. After an error nothing may run, although the
// record may be there: it is taken back in the background, so that the key is
// good for another try.
func (r *recorder) claim(ctx context.Context, rec *activations.Record) (existing *activations.Record, err error) {
	created, existing, err := r.activations.Start(context.WithoutCancel(ctx), rec)
	if err != nil {
		r.later(rec, "an activation that did not run was not taken back", func(ctx context.Context) error {
			return r.activations.Withdraw(ctx, rec)
		})
		return nil, err
	}
	if created {
		return nil, nil //nolint:nilnil // documented: the id was free
	}
	return existing, nil
}

// finish records the end of an activation. Where its running record is stored, it
// writes the logs and then the terminal record by compare-and-set; where it is not
// (see visibility), it stores all of it at once. It returns the record that stands:
// another writer may have ended the activation first (a cancel). On an error the
// writes continue in the background.
//
// If final itself stands, it is returned with its complete result, also if the stored one is
// truncated (see activations.TruncateResult). running and final must not be changed after the
// call: the background writes use them.
func (r *recorder) finish(ctx context.Context, running, final *activations.Record, logs *logsink.Sink, visible *visibility.Visibility) (*activations.Record, error) {
	ctx = context.WithoutCancel(ctx)
	if visible.Silent() {
		if final.Status == api.StatusSuccess {
			final.LogsTruncated = final.LogsTruncated || logs.Truncated() // observers and callers see it
			logs.Discard()
			return final, nil
		}
		visible.Speak()
	}
	r.note(final)
	// A log of several chunks is written before the terminal record, so the running
	// record has to be there first: log chunks without a record would belong to nothing.
	chunk, one := logs.Only()
	if !one {
		_ = visible.Ensure(ctx) // end returns its error
	}
	begun, err := visible.End()
	if begun && err == nil {
		current, err := r.try(ctx, final, logs)
		if err != nil {
			r.persist(nil, final, logs)
		}
		return current, err
	}
	if !begun { // the short call: the record is written once, as terminal
		final.LogsTruncated = final.LogsTruncated || logs.Truncated()
		var current *activations.Record
		var won bool
		won, current, err = r.activations.RecordEnded(ctx, final, chunk)
		if err == nil {
			if won {
				return final, nil
			}
			return current, nil
		}
	}
	// The running record may or may not be stored. Writing it again before the terminal
	// one is right in both cases.
	r.persist(running, final, logs)
	return nil, err
}

// try writes the remaining logs and then the terminal record, once, and returns the record
// that stands: final itself if this writer won. It may be repeated after an error.
func (r *recorder) try(ctx context.Context, final *activations.Record, logs *logsink.Sink) (*activations.Record, error) {
	if err := logs.Drain(ctx, final); err != nil {
		return nil, err
	}
	final.LogsTruncated = final.LogsTruncated || logs.Truncated()
	won, current, err := r.activations.Finish(ctx, final)
	switch {
	case err != nil:
		return nil, err
	case won:
		return final, nil
	}
	return current, nil
}

// persist repeats the writes of an end in the background. running is nil if the running
// record is known to be stored.
func (r *recorder) persist(running, final *activations.Record, logs *logsink.Sink) {
	own := *final // the caller reads its record, and a try changes it
	r.later(&own, "an activation's end was not recorded", func(ctx context.Context) error {
		return r.persistOnce(ctx, &running, &own, logs)
	})
}

// later repeats write in the background until it succeeds or readers would treat rec as
// lost; failed is the log message of the second case. The metrics records_late and
// records_lag_seconds cover rec until then.
func (r *recorder) later(rec *activations.Record, failed string, write func(context.Context) error) {
	r.late.Add(1)
	r.mu.Lock()
	r.pending[rec] = time.Now()
	r.mu.Unlock()
	go func() {
		defer r.late.Done()
		defer r.arrived(rec)
		until := time.UnixMilli(rec.DeadlineMS + api.LostGraceMS)
		ctx, cancel := context.WithDeadline(r.base, until)
		defer cancel()
		err := tryUntil(ctx, func(ctx context.Context) error {
			r.metrics.Retries.Inc()
			return write(ctx)
		})
		if err != nil {
			r.metrics.Lost.Inc()
			r.logger.Error(failed, append(ids(rec), zap.Error(err))...)
		}
	}()
}

// arrived ends the wait for a late record, whether it was written or abandoned.
func (r *recorder) arrived(rec *activations.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, rec)
}

// behind returns the number of late records at now, and how long the oldest has been
// tried.
func (r *recorder) behind(now time.Time) (late int, oldest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, since := range r.pending {
		oldest = max(oldest, now.Sub(since))
	}
	return len(r.pending), oldest
}

// tryUntil repeats write until it succeeds or ctx ends. It waits between tries, for
// recordRetryMin at first and twice as long after each failure.
func tryUntil(ctx context.Context, write func(context.Context) error) error {
	for wait := recordRetryMin; ; wait = min(2*wait, recordRetryMax) {
		err := write(ctx)
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

// persistOnce is one try of persist. Once the running record is stored it sets *running to
// nil, and the next try goes on to the terminal record.
func (r *recorder) persistOnce(ctx context.Context, running **activations.Record, final *activations.Record, logs *logsink.Sink) error {
	if *running != nil {
		if _, _, err := r.activations.Start(ctx, *running); err != nil {
			return err
		}
		*running = nil
	}
	_, err := r.try(ctx, final, logs)
	return err
}

// close waits for late writes until ctx ends, then abandons them and returns ctx's error.
// The activations that it abandons end as lost: their readers find them.
func (r *recorder) close(ctx context.Context) error {
	if late, _ := r.behind(time.Now()); late == 0 {
		ctx = r.base // there is nothing to give up, even if ctx has ended
	}
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
