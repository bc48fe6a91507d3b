package records_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/records"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// replies records the largest number of members that a command returned.
type replies struct{ largest, commands atomic.Int64 }

func (r *replies) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *replies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *replies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		var n int
		switch c := cmd.(type) {
		case *redis.ZSliceCmd:
			n = len(c.Val())
		case *redis.ScanCmd:
			members, _ := c.Val()
			n = len(members) / 2
		default: // the store looks at its server too
			return err
		}
		r.commands.Add(1)
		for last := r.largest.Load(); int64(n) > last && !r.largest.CompareAndSwap(last, int64(n)); last = r.largest.Load() {
		}
		return err
	}
}

// TestBeforePagesOneScore: every member of a set is returned, however many share a score, and each
// call sends one command with a small reply.
func TestBeforePagesOneScore(t *testing.T) {
	t.Parallel()
	const limit, perScore = 100, 30
	for _, tied := range []int{0, 1, limit, 3*limit + 7, 20_000} {
		t.Run(fmt.Sprint(tied), func(t *testing.T) {
			t.Parallel()
			store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
			broker, err := queue.New(t.Context(), store, queue.Config{})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			t.Cleanup(broker.Close)
			set := store.JobKeys(storagetest.Tenant(t)).Queues() + ":pages"
			want := fill(t, store.Client(), set, tied, perScore)
			seen := &replies{}
			store.Client().AddHook(seen)
			got, calls := members(t, broker.Records(), set, limit)
			for id := range want {
				if !got[id] {
					t.Fatalf("got no member %s among %d, want all %d", id, len(got), len(want))
				}
			}
			if len(got) != len(want) {
				t.Errorf("got %d members, want %d", len(got), len(want))
			}
			// A scan returns a few members more than it is asked for.
			if n := seen.largest.Load(); n > 2*limit || seen.commands.Load() != int64(calls) {
				t.Errorf("got a reply of %d members and %d commands in %d calls, want at most %d members and one command a call", n, seen.commands.Load(), calls, 2*limit)
			}
		})
	}
}

// fill adds perScore members of several scores above and below that of tied further members.
func fill(t *testing.T, client redis.UniversalClient, set string, tied, perScore int) map[string]bool {
	t.Helper()
	want := map[string]bool{}
	var batch []redis.Z
	add := func(member string, score float64) {
		want[member] = true
		batch = append(batch, redis.Z{Member: member, Score: score})
		if len(batch) == 1000 {
			if err := client.ZAdd(t.Context(), set, batch...).Err(); err != nil {
				t.Fatalf("ZAdd: %v", err)
			}
			batch = nil
		}
	}
	for i := range 10 * perScore {
		add(fmt.Sprint("other", i), 1_700_000_000_000+float64(i/perScore)-5.5)
	}
	for i := range tied {
		add(fmt.Sprint("tied", i), 1_700_000_000_000)
	}
	if err := client.ZAdd(t.Context(), set, append(batch, redis.Z{Member: "low", Score: 0})...).Err(); err != nil {
		t.Fatalf("ZAdd: %v", err)
	}
	want["low"] = true
	return want
}

// members pages through a set.
func members(t *testing.T, r *records.Reader, set string, limit int) (got map[string]bool, calls int) {
	t.Helper()
	got = map[string]bool{}
	for from := ""; ; {
		ids, next, err := r.Before(t.Context(), set, from, limit)
		if err != nil {
			t.Fatalf("Before %q: %v", from, err)
		}
		calls++
		for _, id := range ids {
			got[id] = true
		}
		if next == "" {
			return got, calls
		}
		if next == from || calls > 10_000 {
			t.Fatalf("got the position %q after %q, call %d, want progress", next, from, calls)
		}
		from = next
	}
}

// TestBeforeRefusesOtherPositions: a text that Before did not return is refused.
func TestBeforeRefusesOtherPositions(t *testing.T) {
	t.Parallel()
	store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	broker, err := queue.New(t.Context(), store, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(broker.Close)
	for _, from := range []string{"x/1", "1", "1/x", "1/scan/x"} {
		if _, _, err := broker.Records().Before(t.Context(), "set", from, 1); err == nil || !strings.Contains(err.Error(), "position") {
			t.Errorf("Before %q: got error %v, want that of the position", from, err)
		}
	}
}
