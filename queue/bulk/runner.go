package bulk

import (
	"context"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

const (
	claimMS   = 30_000           // of a claim: how long an operation waits after its replica was killed
	chunkTime = 10 * time.Second // bounds a chunk, well within its claim
	idleTime  = time.Second      // between two readings of the due set
	quietTime = 5 * time.Second  // the same while no operation runs; one that is created here wakes the runner
	retryMS   = 5_000            // until the next attempt after an error
	behindMS  = 1_000            // until the mirror is looked at again that is behind the operation
	maxRead   = 1_000            // members of the due set that a round reads
	atOnce    = 4                // tenants whose operations are worked on at once
)

// Run runs due operations until ctx ends. Only a replica with a mirror calls it.
func (o *Operations) Run(ctx context.Context) {
	for {
		worked, err := o.RunOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			o.log.Warn("bulk operations cannot be read", zap.Error(err))
		}
		wait := idleTime
		if o.running.Load() == 0 {
			wait = quietTime
		}
		if worked > 0 && err == nil {
			wait = duework.RestMS * time.Millisecond / 4
		}
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		case <-time.After(wait):
		}
	}
}

// RunOnce works on one chunk of one due operation of each tenant: of that which is due for the longest
// time. It returns the number of operations that it worked on.
func (o *Operations) RunOnce(ctx context.Context) (worked int, err error) {
	pipe := o.store.Client().Pipeline()
	running := pipe.ZCard(ctx, storage.KeyBulkDue)
	read := pipe.ZRangeByScoreWithScores(ctx, storage.KeyBulkDue, &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(o.store.NowMS(), 10), Count: maxRead})
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, storage.Failure(ctx, "read due bulk operations", err)
	}
	o.metrics.running.Set(float64(running.Val()))
	o.running.Store(running.Val())
	visited := map[string]bool{}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, z := range read.Val() {
		member, _ := z.Member.(string)
		tenant, _, _ := strings.Cut(member, "/")
		if visited[tenant] || ctx.Err() != nil {
			continue
		}
		visited[tenant] = true
		group.Go(func() error {
			o.visit(ctx, storage.DueMember{Key: storage.KeyBulkDue, Member: member, Score: int64(z.Score)})
			return nil
		})
	}
	return len(visited), group.Wait()
}

// visit claims a due operation and works on one chunk of it. A chunk is finished also after ctx has
// ended, so that its progress is saved.
func (o *Operations) visit(ctx context.Context, m storage.DueMember) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), chunkTime)
	defer cancel()
	claims, err := duework.Claim(ctx, o.store, []storage.DueMember{m}, o.store.NowMS()+claimMS)
	if err != nil || len(claims.Members) == 0 {
		return // another replica has it, or it is due again after the claim
	}
	began := time.Now()
	next, err := o.work(ctx, m.Member)
	if err != nil {
		o.log.Warn("a bulk operation is interrupted", zap.String("operation", m.Member), zap.Error(err))
		next = o.store.NowMS() + retryMS
	} else if next > 0 {
		// It rests as long as it worked, so it takes at most half of what one worker can do.
		next += time.Since(began).Milliseconds()
	}
	if err := claims.Settle(ctx, []int64{next}); err != nil {
		o.log.Warn("a bulk operation waits for the end of its claim", zap.String("operation", m.Member), zap.Error(err))
	}
}

// work works on one chunk of the operation of a member of the due set, and returns when it is due
// next, 0 for never.
func (o *Operations) work(ctx context.Context, member string) (next int64, err error) {
	tenant, rest, _ := strings.Cut(member, "/")
	id, created, _ := strings.Cut(rest, "/")
	r, err := o.read(ctx, tenant, id)
	if err != nil && api.ErrorCode(err) != api.CodeBulkNotFound {
		return 0, err
	}
	now := o.store.NowMS()
	if r == nil {
		at, err := strconv.ParseInt(created, 10, 64)
		if err != nil || at+creationMS < now {
			return 0, nil //nolint:nilerr // such a member has no operation
		}
		return now + behindMS, nil // it is being created
	}
	if r.State != search.BulkRunning {
		return 0, o.retire(ctx, r)
	}
	state, err := o.selector.State()
	if err != nil {
		return 0, err
	}
	if state.Rebuilding || now-state.LagMS < r.CreatedAtMS {
		return now + behindMS, nil // the mirror may lack jobs of the selection
	}
	after, err := o.chunk(ctx, r)
	if err != nil {
		return 0, err
	}
	ended, err := o.save(ctx, r, after)
	if err != nil || ended {
		return 0, err
	}
	return o.store.NowMS(), nil
}

// save writes the progress of a chunk, and reports whether the operation has ended. Progress of an
// operation that was cancelled meanwhile is added to it. Progress of one that another replica has
// continued is dropped: that replica examines the same jobs.
func (o *Operations) save(ctx context.Context, r, after *record) (ended bool, err error) {
	before := r
	for range maxTries {
		done, err := o.write(ctx, r, after)
		if done {
			o.metrics.examined(r.Operation, &before.Bulk, &after.Bulk)
		}
		if done || err != nil {
			return after.State != search.BulkRunning, err
		}
		current, err := o.read(ctx, r.tenant, r.ID)
		switch {
		case err != nil || current == nil:
			return true, err
		case current.State != search.BulkCancelled || current.Cursor != r.Cursor || current.Done != r.Done:
			return current.State != search.BulkRunning, nil
		}
		merged := *after
		merged.State, merged.EndedAtMS = current.State, current.EndedAtMS
		r, after = current, &merged
	}
	return false, api.Errorf(api.CodeStoreConflict, "bulk operation %s keeps changing", r.ID)
}
