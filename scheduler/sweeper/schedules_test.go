package sweeper_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// scheduleReads counts the names that are read from indexes of schedules, and the records.
type scheduleReads struct{ names, records atomic.Int64 }

func (*scheduleReads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *scheduleReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		r.count(cmd)
		return err
	}
}

func (r *scheduleReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			r.count(cmd)
		}
		return err
	}
}

func (r *scheduleReads) count(cmd redis.Cmder) {
	if len(cmd.Args()) < 2 || !strings.HasPrefix(fmt.Sprint(cmd.Args()[1]), "cs:schedule:") {
		return
	}
	switch reply := cmd.(type) {
	case *redis.StringSliceCmd:
		if cmd.Name() == "smembers" {
			r.names.Add(int64(len(reply.Val())))
		}
	case *redis.ScanCmd:
		names, _ := reply.Val()
		r.names.Add(int64(len(names)))
	case *redis.StringCmd:
		r.records.Add(1)
	}
}

// TestPassesReadAnIndexOfSchedulesOnce: a pass reads the index of a namespace once, and not for each
// page of its schedules.
func TestPassesReadAnIndexOfSchedulesOnce(t *testing.T) {
	t.Parallel()
	const n = 2000
	reads := &scheduleReads{}
	b := newRepairBench(t, storage.Config{URL: storagetest.Redis(t).URL, Hook: func(c redis.UniversalClient) { c.AddHook(reads) }})
	b.must(storage.NewTenants(b.store).RegisterNamespace(t.Context(), b.tenant, home))
	names := make([]any, n)
	for i := range names {
		names[i] = fmt.Sprintf("job-%05d", i)
	}
	b.must(b.client().SAdd(t.Context(), b.store.Keys().ScheduleIndex(b.tenant, home), names...).Err())
	b.pass(b.sweepers(1))
	records := reads.records.Load()
	if records < n {
		t.Errorf("a pass over %d schedules: got %d records read, want all", n, records)
	}
	// A scan may name some twice, and the last pass may end after it has read the index.
	if got, most := reads.names.Load(), records+records/10+2*n; got > most {
		t.Errorf("passes that read %d records: got %d names read, want at most %d", records, got, most)
	}
}
