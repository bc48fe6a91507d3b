package shares

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const small = 100 // the memory of a usual call

// testbed is a ledger with the calls that run and wait, at a time of the test's own.
type testbed struct {
	*Ledger
	t     *testing.T
	now   time.Time
	lines map[string]*Line
}

// newTestbed returns a testbed with so many places of a small call's memory.
func newTestbed(t *testing.T, places int, change ...func(*Config)) *testbed {
	t.Helper()
	cfg := Config{Places: places, Bytes: int64(places) * small, MaxWaiting: 1000, LongWait: time.Hour}
	for _, c := range change {
		c(&cfg)
	}
	return &testbed{Ledger: New(cfg), t: t, now: time.Unix(1e9, 0), lines: map[string]*Line{}}
}

// reserved is a reserve of so many places and their memory.
func reserved(places int) func(*Config) {
	return func(c *Config) { c.ReservedPlaces, c.ReservedBytes = places, int64(places)*small }
}

// line returns the line of a function, whose name may end in @ and a number of bytes.
func (b *testbed) line(tenant, function string, need int64) *Line {
	key := fmt.Sprint(tenant, "/", function, "/", need)
	if b.lines[key] == nil {
		b.lines[key] = b.Line(tenant, function, need, func(*Waiter) bool { return true })
	}
	return b.lines[key]
}

// begin lets n calls begin, and returns how many could.
func (b *testbed) begin(line *Line, n int) int {
	for k := range n {
		if !b.Admits(line) {
			return k
		}
		b.Use(line)
	}
	return n
}

// wait lets n calls wait.
func (b *testbed) wait(line *Line, n int) (last *Waiter) {
	for range n {
		last = &Waiter{Line: line, Since: b.now, Value: line.Tenant.name + "/" + line.name}
		b.Wait(last)
	}
	return last
}

// serve serves the calls that can be, and returns them.
func (b *testbed) serve() []string {
	var out []string
	for w := b.Next(b.now); w != nil; w = b.Next(b.now) {
		if !b.Admits(w.Line) {
			b.t.Errorf("Next: got call %v of a line that is not admitted, want an admitted one", w.Value)
		}
		b.Remove(w)
		b.Use(w.Line)
		out = append(out, w.Value.(string))
	}
	return out
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestReserve: tiny pools keep enough for one tenant.
func TestReserve(t *testing.T) {
	t.Parallel()
	got := map[int64]int64{}
	for _, total := range []int64{1, 2, 3, 4, 5, 6, 10, 14, 15, 100} {
		got[total] = Reserve(total, 2, 20)
	}
	want(t, "reserved places", got, map[int64]int64{1: 0, 2: 0, 3: 1, 4: 1, 5: 1, 6: 2, 10: 2, 14: 2, 15: 3, 100: 20})
	want(t, "without a reserve", Reserve(100, 2, 0), int64(0))
}

// TestOneTenantLeavesTheReserve of places and of memory, and others use it.
func TestOneTenantLeavesTheReserve(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 100, reserved(20))
	want(t, "headroom of one tenant", b.Headroom("attacker", small), 80)
	want(t, "calls of one tenant", b.begin(b.line("attacker", "f", small), 1000), 80)
	want(t, "headroom at the bound", b.Headroom("attacker", small), 0)
	want(t, "headroom of another tenant", b.Headroom("victim", small), 16)
	want(t, "calls of another tenant", b.begin(b.line("victim", "f", small), 1000), 16)

	b = newTestbed(t, 100, reserved(20))
	want(t, "large calls of one tenant", b.begin(b.line("attacker", "f", 10*small), 1000), 8)
	want(t, "calls of another tenant", b.begin(b.line("victim", "f", small), 10), 10)
}

// TestManyTenantsLeaveRoomForNewcomers: the more tenants hold as much as they may, the less
// each gets, so that one more still finds a place.
func TestManyTenantsLeaveRoomForNewcomers(t *testing.T) {
	t.Parallel()
	for _, tenants := range []int{2, 5, 20} {
		b := newTestbed(t, 100, reserved(20))
		for range 100 { // each takes what it may, one call after another
			for n := range tenants {
				b.begin(b.line(fmt.Sprint("attacker", n), "f", small), 1)
			}
		}
		if got := b.begin(b.line("newcomer", "f", small), 1); got != 1 {
			t.Errorf("beside %d tenants: got %d calls of a newcomer, want 1", tenants, got)
		}
	}
}

// TestPlacesGoByTurns: by tenant, then by function, then in order of arrival, however many
// calls of one of them wait.
func TestPlacesGoByTurns(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 9)
	held := b.line("held", "f", small)
	b.begin(held, 9)
	b.wait(b.line("a", "x", small), 50)
	b.wait(b.line("a", "y", small), 50)
	b.wait(b.line("b", "z", small), 50)
	b.wait(b.line("c", "z", small), 1)
	var got []string
	for range 9 {
		b.Free(held, 0, b.now)
		got = append(got, b.serve()...)
	}
	want(t, "order", got, []string{"a/x", "b/z", "c/z", "a/y", "b/z", "a/x", "b/z", "a/y", "b/z"})
}

// TestOnePlaceGoesByTurns: where no tenant holds anything when the place is free, too.
func TestOnePlaceGoesByTurns(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 1, func(c *Config) {
		c.Share = func(tenant string) Share { return Share{Weight: map[string]int{"heavy": 200}[tenant]} }
	})
	held := b.line("held", "f", small)
	b.begin(held, 1)
	lines := map[string]*Line{"light/f": b.line("light", "f", small), "heavy/f": b.line("heavy", "f", small)}
	b.wait(lines["light/f"], 20)
	b.wait(lines["heavy/f"], 20)
	b.Free(held, 0, b.now)
	got := map[string]int{}
	for range 12 {
		for _, served := range b.serve() {
			got[served]++
			b.Free(lines[served], 0, b.now)
			break
		}
	}
	want(t, "turns by weight", got, map[string]int{"heavy/f": 8, "light/f": 4})
}

// TestWeights: tenants hold places in proportion to their weights.
func TestWeights(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 40, func(c *Config) {
		c.Share = func(tenant string) Share { return Share{Weight: map[string]int{"heavy": 300}[tenant]} }
	})
	held := b.line("held", "f", small)
	b.begin(held, 40)
	b.wait(b.line("light", "f", small), 100)
	b.wait(b.line("heavy", "f", small), 100)
	got := map[string]int{}
	for range 40 {
		b.Free(held, 0, b.now)
		for _, served := range b.serve() {
			got[served]++
		}
	}
	want(t, "places", got, map[string]int{"heavy/f": 30, "light/f": 10})
}

// TestCaps of a tenant hold for its calls, and end its warm children for another.
func TestCaps(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 100, func(c *Config) {
		c.Share = func(tenant string) Share {
			return map[string]Share{"few": {MaxSandboxes: 3}, "little": {MaxMemoryBytes: 5 * small}}[tenant]
		}
	})
	few, little := b.line("few", "f", small), b.line("little", "f", 2*small)
	want(t, "calls under a cap of sandboxes", b.begin(few, 10), 3)
	want(t, "calls under a cap of memory", b.begin(little, 10), 2)
	want(t, "headroom under a cap of memory", b.Headroom("little", small), 1)
	for range 3 {
		b.Join(few)
	}
	want(t, "a fourth child is too many", few.Tenant.Excess(few), true)
	b.Leave(few)
	want(t, "a third child is too many", few.Tenant.Excess(few), false)
}

// TestLargeCallIsOvertaken: a call that does not fit does not stop others, of its tenant and of
// others.
func TestLargeCallIsOvertaken(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 100)
	b.begin(b.line("busy", "f", small), 1)
	b.wait(b.line("large", "f", 100*small), 1)
	b.wait(b.line("large", "small", small), 1)
	b.wait(b.line("other", "f", small), 1)
	want(t, "served", len(b.serve()), 2)
}

// TestRoomIsHeldBack for a large call that was overtaken often enough, for a bounded time.
func TestRoomIsHeldBack(t *testing.T) {
	t.Parallel()
	for name, small := range map[string]string{"another tenant's": "other", "its own tenant's": "large"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestbed(t, 100)
			busy := b.line("busy", "f", 2*100)
			b.begin(busy, 1)
			big := b.wait(b.line("large", "f", 99*100), 1)
			line := b.line(small, "small", 100)
			overtaken := 0
			for range 100 {
				b.wait(line, 1)
				if len(b.serve()) == 0 {
					break
				}
				overtaken++
				b.Free(line, 0, b.now)
			}
			want(t, "calls that overtook it", overtaken, maxOvertaken)
			want(t, "end of the hold", b.Recheck(), b.now.Add(holdTime))
			b.now = b.now.Add(holdTime - 1)
			want(t, "served while room is held back", b.serve(), []string(nil))
			held := big.held
			want(t, "held", held, true)

			// Its room comes in time.
			b.Free(busy, 0, b.now)
			want(t, "served when it fits", b.serve()[0], "large/f")
		})
	}
}

// TestRoomIsNotHeldBackInVain: a large call for which no room comes does not stop the others
// for longer, and no other large call does so at once.
func TestRoomIsNotHeldBackInVain(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 100)
	b.begin(b.line("busy", "f", 2*small), 1)
	b.wait(b.line("large", "f", 99*small), 1)
	b.wait(b.line("large2", "f", 99*small), 1)
	b.now = b.now.Add(overtakenFor)
	line := b.line("other", "f", small)
	b.wait(line, 2)
	want(t, "served while room is held back", b.serve(), []string(nil))
	b.now = b.now.Add(holdTime)
	want(t, "served after it", b.serve(), []string{"other/f", "other/f"})
	b.now = b.now.Add(holdTime)
	b.wait(line, 1)
	want(t, "served before the next hold", b.serve(), []string{"other/f"})
	b.now = b.now.Add(holdsInterval)
	b.wait(line, 1)
	want(t, "served while room is held back for the other", b.serve(), []string(nil))
}

// TestLargeCallOfABusyTenantWaits: room is not held back against a tenant that holds less.
func TestLargeCallOfABusyTenantWaits(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 100)
	b.begin(b.line("attacker", "sleep", small), 60)
	b.wait(b.line("attacker", "large", 60*small), 5)
	for range 50 {
		b.now = b.now.Add(overtakenFor)
		line := b.line("victim", "f", small)
		b.wait(line, 1)
		want(t, "the victim's call", b.serve(), []string{"victim/f"})
		b.Free(line, 0, b.now)
	}
}

// TestOwnBoundHoldsBackOwnCalls: a large call that the tenant's own bounds keep from memory
// gets it after a bounded number of the tenant's small calls, and others do not notice.
func TestOwnBoundHoldsBackOwnCalls(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 100, reserved(20))
	own := b.line("a", "busy", 2*small)
	b.begin(own, 1)
	b.wait(b.line("a", "large", 79*small), 1)
	line, other := b.line("a", "f", small), b.line("b", "f", small)
	for range maxOvertaken {
		b.wait(line, 1)
		want(t, "served", b.serve(), []string{"a/f"})
		b.Free(line, 0, b.now)
	}
	b.wait(line, 1)
	b.wait(other, 1)
	want(t, "served while room is held back", b.serve(), []string{"b/f"})
	b.Free(other, 0, b.now)
	b.Free(own, 0, b.now)
	want(t, "served when it fits", b.serve()[0], "a/large")
}

// TestPassesOn: a place stays with a version whose calls wait, unless another tenant or
// function that holds less waits for it.
func TestPassesOn(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 4)
	a := b.line("a", "f", small)
	b.begin(a, 4)
	b.wait(a, 10)
	want(t, "alone", b.PassesOn(a, b.now), false)
	b.wait(b.line("b", "f", small), 2)
	want(t, "another tenant holds nothing", b.PassesOn(a, b.now), true)
	b.Free(a, 0, b.now)
	want(t, "served", b.serve(), []string{"b/f"})
	want(t, "another holds less", b.PassesOn(a, b.now), true)
	b.Free(a, 0, b.now)
	want(t, "served", b.serve(), []string{"b/f"})
	b.wait(b.line("b", "f", small), 1)
	want(t, "another holds more than is left", b.PassesOn(a, b.now), false)
}

// TestTenantGivesBack what it holds beyond its bounds since others came, as its calls end.
func TestTenantGivesBack(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 100, reserved(20))
	a, other := b.line("a", "f", small), b.line("b", "f", small)
	b.begin(a, 100)
	b.wait(a, 100)
	want(t, "alone at its bound", b.PassesOn(a, b.now), false)
	want(t, "calls of another tenant", b.begin(other, 100), 16)
	for range 100 {
		if b.PassesOn(a, b.now) {
			b.Free(a, 0, b.now)
			want(t, "served", b.serve(), []string(nil))
		}
		b.begin(other, 1)
	}
	want(t, "places of both", []int{a.Tenant.busy, other.Tenant.busy}, []int{45, 44})
}

// TestPassesOnInTime: two functions that share one place take it from each other seldom, since
// each time costs a start.
func TestPassesOnInTime(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 1)
	f, g := b.line("a", "f", small), b.line("a", "g", small)
	b.begin(f, 1)
	b.wait(f, 1)
	b.wait(g, 1)
	want(t, "at once", b.PassesOn(f, b.now), false)
	b.now = b.now.Add(turnTime)
	b.turn++
	f.function.turn = b.turn
	want(t, "later", b.PassesOn(f, b.now), true)
	want(t, "again at once", b.PassesOn(f, b.now), false)
}

// TestWaitingIsBounded for each tenant.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 1, func(c *Config) { c.MaxWaiting = 3 })
	a, other := b.line("a", "f", small), b.line("b", "f", small)
	b.wait(a, 3)
	want(t, "a fourth call may wait", b.MayWait(a, b.now), false)
	want(t, "another tenant's may", b.MayWait(other, b.now), true)
}

// TestNoCallWaitsInVain: where the calls that run hold their places for long, no further call
// waits. A line without calls that run, and a short one, take calls.
func TestNoCallWaitsInVain(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 10, func(c *Config) { c.LongWait = time.Second })
	line, other := b.line("a", "f", small), b.line("a", "g", small)
	b.begin(line, 10)
	b.wait(line, 100)
	b.wait(other, 100)
	want(t, "before a call has ended", b.MayWait(line, b.now), true)
	want(t, "when none has ended for 0.1 s", b.MayWait(line, b.now.Add(100*time.Millisecond)), false)
	want(t, "of a function without calls", b.MayWait(other, b.now.Add(100*time.Millisecond)), true)
	for range 20 {
		b.Pass(line.First(), 200*time.Millisecond, b.now)
	}
	want(t, "behind 80 calls of 200 ms", b.MayWait(line, b.now), false)
	for len(line.waiters) > 48 {
		b.Remove(line.First())
	}
	want(t, "behind 48 calls of 200 ms", b.MayWait(line, b.now), true)
	for range 40 {
		b.Pass(line.First(), time.Hour, b.now)
	}
	want(t, "behind 8 calls of an hour", b.MayWait(line, b.now), false)
	for len(line.waiters) >= shortLine {
		b.Remove(line.First())
	}
	want(t, "behind few calls of an hour", b.MayWait(line, b.now), true)
	b.wait(line, 40)
	want(t, "behind many calls of an hour", b.MayWait(line, b.now), false)
	b.Free(line, time.Hour, b.now)
	want(t, "where there is room", b.MayWait(line, b.now), true)
}

// TestOwnBound: a call waits for its tenant's others where the tenant holds its share, not where
// the pool is full.
func TestOwnBound(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 10, reserved(2))
	a, other := b.line("a", "f", small), b.line("b", "f", small)
	want(t, "calls of a that begin", b.begin(a, 10), 8)
	want(t, "a at its share", b.OwnBound(a), true)
	want(t, "another tenant", b.OwnBound(other), false)
}

// TestRetryAfter follows how long calls hold their places.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 2)
	line := b.line("a", "f", small)
	b.begin(line, 2)
	want(t, "without experience", b.RetryAfter(line, b.now), leastRetry)
	b.wait(line, 13)
	for range 4 {
		b.Pass(line.First(), 2*time.Second, b.now)
	}
	want(t, "behind nine calls of 2 s", b.RetryAfter(line, b.now), 10*time.Second)
	want(t, "when no call has ended for long", b.RetryAfter(line, b.now.Add(time.Hour)), longestRetry)
}

// TestNothingIsKept of tenants without versions.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, 2)
	x, y := b.Line("a", "f", small, nil), b.Line("a", "f", small, nil)
	b.Forget(x)
	want(t, "functions", len(b.tenants["a"].functions), 1)
	b.Forget(y)
	want(t, "tenants", len(b.tenants), 0)
}
