package storage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/storage/storagetest"
)

// largestReply measures the replies that hold members of sets.
type largestReply struct{ members int }

func (*largestReply) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*largestReply) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *largestReply) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		switch reply := cmd.(type) {
		case *redis.StringSliceCmd:
			r.members = max(r.members, len(reply.Val()))
		case *redis.ScanCmd:
			names, _ := reply.Val()
			r.members = max(r.members, len(names))
		}
		return err
	}
}

// TestSchedulesAreListedInSmallSteps: no command of a list occupies the store for as long as a whole
// namespace of schedules takes.
func TestSchedulesAreListedInSmallSteps(t *testing.T) {
	t.Parallel()
	largest := &largestReply{}
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Hook: func(c redis.UniversalClient) { c.AddHook(largest) }})
	repository, tenant := schedules.New(s), storagetest.Tenant(t)
	names := make([]any, api.MaxSchedules)
	for i := range names {
		names[i] = fmt.Sprintf("job-%05d", i)
	}
	if err := s.Client().SAdd(t.Context(), s.Keys().ScheduleIndex(tenant, "payments"), names...).Err(); err != nil {
		t.Fatalf("SAdd: %v", err)
	}
	page, next, err := repository.Names(t.Context(), tenant, "payments", "job-00041", 1)
	if err != nil || len(page) != 1 || page[0] != "job-00042" || next != "job-00042" {
		t.Errorf("Names: got %v, next %q and error %v, want job-00042 twice", page, next, err)
	}
	all, _, err := repository.AllNames(t.Context(), tenant, "payments")
	if err != nil || len(all) != len(names) || all[0] != names[0] || all[len(all)-1] != names[len(names)-1] {
		t.Errorf("AllNames: got %d names and error %v, want %d in order", len(all), err, len(names))
	}
	if most := 1000; largest.members > most {
		t.Errorf("the largest reply: got %d names, want at most %d", largest.members, most)
	}
}
