package duework_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
	"github.com/codesous/sous/storage/storagetest"
)

// bench is a store with due members of a tenant of its own.
type bench struct {
	store  *storage.Store
	tenant string
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			test(t, &bench{storagetest.Open(t, backend.Config(t)), storagetest.Tenant(t)})
		})
	}
}

// member returns the due queue of the given name.
func (b *bench) member(name string) string { return storage.DueQueuePrefix + b.tenant + "/ns/" + name }

// mark makes members due at the given moment.
func (b *bench) mark(t *testing.T, at int64, names ...string) (marked []storage.DueMember) {
	t.Helper()
	pipe := b.store.Client().Pipeline()
	for _, name := range names {
		m := b.member(name)
		storage.MarkDue(t.Context(), pipe, m, at)
		marked = append(marked, storage.DueMember{Key: storage.KeyDue(storage.DueShard(m)), Member: m, Score: at})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("MarkDue: %v", err)
	}
	return marked
}

// moment returns the moment at which a member is due, 0 for never.
func (b *bench) moment(t *testing.T, name string) int64 {
	t.Helper()
	m := b.member(name)
	return int64(b.store.Client().ZScore(t.Context(), storage.KeyDue(storage.DueShard(m)), m).Val())
}

func (b *bench) claim(t *testing.T, due []storage.DueMember, until int64) *duework.Claims {
	t.Helper()
	claims, err := duework.Claim(t.Context(), b.store, due, until)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	return claims
}

// TestClaimIsExclusive: of two replicas that read the same members, one holds each.
func TestClaimIsExclusive(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		due := b.mark(t, 1000, "a", "b", "c")
		first := b.claim(t, due[:2], 6000)
		second := b.claim(t, due, 7000)
		if len(first.Members) != 2 || len(second.Members) != 1 || second.Members[0].Member != due[2].Member {
			t.Errorf("Claim: got %v and %v, want the first two members and the last", first.Members, second.Members)
		}
		for name, want := range map[string]int64{"a": 6000, "b": 6000, "c": 7000} {
			if got := b.moment(t, name); got != want {
				t.Errorf("member %s: got due at %d, want %d: the end of its claim", name, got, want)
			}
		}
	})
}

// TestSettleAndRecheck: what becomes of a member, by what was read before and after Settle and
// what another process did meanwhile.
func TestSettleAndRecheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		marked  int64 // by another process while the claim was held, 0 for none
		settled int64 // what was read before Settle
		later   int64 // what was read after it
		want    int64
	}{
		"nothing left":                      {want: 0},
		"next work":                         {settled: 9000, later: 9000, want: 9000},
		"later work came, none was known":   {later: 9000, want: 9000},
		"nearer work came":                  {settled: 9000, later: 8000, want: 8000},
		"the known work is done":            {settled: 8000, later: 9000, want: 8000},
		"another mark, nothing left":        {marked: 3000, want: 3000},
		"another mark, nearer work is left": {marked: 3000, settled: 2000, later: 2000, want: 2000},
		"another mark, later work is left":  {marked: 3000, settled: 9000, later: 9000, want: 3000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench) {
				claims := b.claim(t, b.mark(t, 1000, "a"), 6000)
				if c.marked > 0 {
					b.mark(t, c.marked, "a")
				}
				if err := claims.Settle(t.Context(), []int64{c.settled}); err != nil {
					t.Fatalf("Settle(%d): %v", c.settled, err)
				}
				soonest, err := claims.Recheck(t.Context(), []int64{c.later})
				if err != nil || soonest != c.later {
					t.Errorf("Recheck(%d) = %d, %v, want %d", c.later, soonest, err, c.later)
				}
				if got := b.moment(t, "a"); got != c.want {
					t.Errorf("member: got due at %d, want %d", got, c.want)
				}
			})
		})
	}
}

// TestAbandon leaves members of which the work failed to the end of their claims.
func TestAbandon(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		claims := b.claim(t, b.mark(t, 1000, "a", "b"), 6000)
		claims.Abandon(func(m string) bool { return m == b.member("a") })
		if err := claims.Settle(t.Context(), []int64{9000}); err != nil {
			t.Fatalf("Settle: %v", err)
		}
		if _, err := claims.Recheck(t.Context(), []int64{9000}); err != nil {
			t.Fatalf("Recheck: %v", err)
		}
		if a, b := b.moment(t, "a"), b.moment(t, "b"); a != 6000 || b != 9000 {
			t.Errorf("got members due at %d and %d, want 6000 and 9000", a, b)
		}
	})
}

// TestRead returns due members by kind, and the moment of the next one.
func TestRead(t *testing.T) {
	t.Parallel()
	// A store of its own: the due sets are those of all tenants.
	b := &bench{storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), storagetest.Tenant(t)}
	b.mark(t, 1000, "a", "b")
	b.mark(t, 3000, "later")
	schedule := storage.DueSchedulePrefix + b.tenant
	pipe := b.store.Client().Pipeline()
	storage.MarkDue(t.Context(), pipe, schedule, 2000)
	storage.MarkDue(t.Context(), pipe, "unknown/"+b.tenant, 1000)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("MarkDue: %v", err)
	}
	due, err := duework.NewReader(b.store).Read(t.Context(), 2000, false)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	names := func(members []storage.DueMember) (out []string) {
		for _, m := range members {
			out = append(out, fmt.Sprint(m.Member, " ", m.Score))
		}
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff([]string{b.member("a") + " 1000", b.member("b") + " 1000"}, names(due.Queues)); diff != "" {
		t.Errorf("due queues, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{schedule + " 2000"}, names(due.Schedules)); diff != "" {
		t.Errorf("due schedules, -want +got:\n%s", diff)
	}
	if due.NextMS != 3000 {
		t.Errorf("Read: got next moment %d, want 3000", due.NextMS)
	}
}

// TestReadLooksBehindManyMembersOfOneTenant: a deep reading returns a member that is due for a
// shorter time than a thousand of another tenant in the same shard, and few of those.
func TestReadLooksBehindManyMembersOfOneTenant(t *testing.T) {
	t.Parallel()
	b := &bench{storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), storagetest.Tenant(t)}
	shard := storage.DueShard(b.member("a"))
	crowd := &bench{b.store, storagetest.Tenant(t)}
	var names []string
	for i := 0; len(names) < 1200; i++ { // more than two pages
		if name := fmt.Sprint(i); storage.DueShard(crowd.member(name)) == shard {
			names = append(names, name)
		}
	}
	crowd.mark(t, 1000, names...)
	want := b.mark(t, 1500, "a")[0]
	for _, deep := range []bool{false, true} {
		due, err := duework.NewReader(b.store).Read(t.Context(), 2000, deep)
		if err != nil {
			t.Fatalf("Read: %v", err)
		}
		others := len(due.Queues)
		if slices.Contains(due.Queues, want) {
			others--
		}
		if found := others < len(due.Queues); found != deep || others != 100 || due.NextMS != 2000 {
			t.Errorf("Read(deep %t): found the member: %t, with %d of the other tenant, next moment %d; want %t, 100 and 2000", deep, found, others, due.NextMS, deep)
		}
	}
}

// TestDeepReadingsAreBounded: a deep reading of a shard with more members than it may read ends
// after ten pages.
func TestDeepReadingsAreBounded(t *testing.T) {
	t.Parallel()
	b := &bench{storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), storagetest.Tenant(t)}
	shard := storage.DueShard(b.member("0"))
	members := make([]redis.Z, 12_000)
	for i := range members {
		members[i] = redis.Z{Score: 1000, Member: b.member(fmt.Sprint(i))} // the shard of each does not matter to a reader
	}
	if err := b.store.Client().ZAdd(t.Context(), storage.KeyDue(shard), members...).Err(); err != nil {
		t.Fatalf("ZAdd: %v", err)
	}
	reads := storagetest.CountCommands(b.store.Client(), "zrangebyscore")
	due, err := duework.NewReader(b.store).Read(t.Context(), 2000, true)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	if want := int64(storage.DueShards + 10); reads() != want || len(due.Queues) != 100 {
		t.Errorf("Read: got %d readings and %d members, want %d and 100", reads(), len(due.Queues), want)
	}
}

// TestAlarm: a ring reaches a loop that listens, and tells the caller if there is none.
func TestAlarm(t *testing.T) {
	t.Parallel()
	a := duework.NewAlarm()
	if a.Ring() {
		t.Error("Ring without a loop = true, want false")
	}
	rung, stop := a.Listen()
	<-rung        // of the call before, which costs the loop one reading
	for range 2 { // the second one finds the alarm ringing
		if !a.Ring() {
			t.Error("Ring with a loop = false, want true")
		}
	}
	<-rung
	stop()
	if a.Ring() {
		t.Error("Ring after the loop has ended = true, want false")
	}
}
