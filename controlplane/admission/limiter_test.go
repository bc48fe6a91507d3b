package admission

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
)

// replica is a server that works on some requests at the same time and lets others wait.
type replica struct {
	limiter *Limiter
	places  chan struct{}
	work    time.Duration // of the platform and its processors, in one place

	served, refused atomic.Int64
	slowest         atomic.Int64 // refusal, in nanoseconds
}

func newReplica(places int, work time.Duration) *replica {
	return &replica{limiter: NewLimiter(0), places: make(chan struct{}, places), work: work}
}

// call is a request of tenant whose function starts when a place is free, and runs for that long
// outside of it.
func (r *replica) call(tenant string, class Class, run time.Duration) bool {
	begin := time.Now()
	var ticket Ticket
	if err := r.limiter.Enter(&ticket, class, tenant, addressFor(tenant)); err != nil {
		r.refused.Add(1)
		r.slowest.Store(max(r.slowest.Load(), int64(time.Since(begin))))
		return false
	}
	defer ticket.Done()
	r.places <- struct{}{}
	ticket.Started()
	time.Sleep(r.work)
	<-r.places
	time.Sleep(run)
	r.served.Add(1)
	return true
}

// offer sends calls of tenant at a rate for some time. It returns when all have ended.
func (r *replica) offer(tenant string, perSecond int, length, run time.Duration) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	done := make(chan struct{})
	n := 0
	for end := time.Now().Add(length); time.Now().Before(end); n++ {
		<-tick.C
		go func() { r.call(tenant, Interactive, run); done <- struct{}{} }()
	}
	for range n {
		<-done
	}
}

// A replica with ten times the load that it can carry serves as much as before, and refuses the
// rest immediately.
func TestOverloadKeepsThroughput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(4, 10*time.Millisecond) // 400 a second
		r.offer("t_a", 4000, 5*time.Second, 0)
		r.served.Store(0)
		r.refused.Store(0)
		begin := time.Now()
		r.offer("t_a", 4000, 10*time.Second, 0)
		perSecond := float64(r.served.Load()) / time.Since(begin).Seconds()
		t.Logf("served %.0f a second, refused %d, limit %d", perSecond, r.refused.Load(), r.limiter.Limit())
		if perSecond < 0.9*400 {
			t.Errorf("served %.0f requests a second under overload, want at least 0.9 of 400", perSecond)
		}
		if limit := r.limiter.Limit(); limit > 200 {
			t.Errorf("limit under overload = %d, want a short queue of at most 200", limit)
		}
		if took := time.Duration(r.slowest.Load()); took > 0 {
			t.Errorf("a refusal took %s, want none of the time", took)
		}
	})
}

// A few hundred clients overload a replica, too, although its limit allows thousands of requests:
// the limit falls to what they have in progress, and then below it.
func TestOverloadOfFewClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(4, 40*time.Millisecond) // 100 a second
		end := time.Now().Add(20 * time.Second)
		done := make(chan struct{})
		for range 400 {
			go func() {
				for time.Now().Before(end) {
					r.call("t_a", Interactive, 0)
					time.Sleep(10 * time.Millisecond)
				}
				done <- struct{}{}
			}()
		}
		time.Sleep(15 * time.Second)
		if limit := r.limiter.Limit(); limit > 2*leastLimit || r.refused.Load() == 0 {
			t.Errorf("400 clients with 4 s of work: got a limit of %d and %d refused calls, want a limit of at most %d", limit, r.refused.Load(), 2*leastLimit)
		}
		for range 400 {
			<-done
		}
	})
}

// Without the load the limit returns, and a burst is not refused.
func TestLimitRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(4, 10*time.Millisecond)
		r.offer("t_a", 4000, 5*time.Second, 0)
		under := r.limiter.Limit()
		r.offer("t_a", 200, 30*time.Second, 0)
		if after := r.limiter.Limit(); after < 4*under || after < 300 {
			t.Errorf("limit after 30 s of light load = %d, %d under overload, want one that has recovered", after, under)
		}
	})
}

// Functions that take long are no load, however many of them run, and a burst is none either.
func TestSlowFunctionsAndBurstsAreNotRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(4, time.Millisecond)
		go r.offer("t_sleeper", 100, 40*time.Second, 10*time.Second) // a thousand at the same time
		time.Sleep(20 * time.Second)
		done := make(chan struct{})
		for range 500 {
			go func() { r.call("t_b", Interactive, 0); done <- struct{}{} }()
		}
		for range 500 {
			<-done
		}
		time.Sleep(40 * time.Second)
		if n := r.refused.Load(); n != 0 {
			t.Errorf("%d calls were refused beside functions that sleep, want none", n)
		}
	})
}

// A tenant with few requests is served beside one that overloads the replica.
func TestOverloadOfOneTenantLeavesOthersRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(4, 10*time.Millisecond)
		victim := "t_victim"
		for r.limiter.bucket(victim) == r.limiter.bucket("t_flood") {
			victim += "s"
		}
		go r.offer("t_flood", 4000, 15*time.Second, 0)
		time.Sleep(3 * time.Second)
		refused := 0
		for range 100 {
			if !r.call(victim, Interactive, 0) {
				refused++
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(20 * time.Second)
		if refused > 2 {
			t.Errorf("%d of 100 calls of a small tenant were refused, want none", refused)
		}
	})
}

// addressFor returns the address of the callers of a tenant.
func addressFor(tenant string) netip.Addr {
	sum := sha256.Sum256([]byte(tenant))
	return netip.AddrFrom4([4]byte(sum[:4]))
}

// A caller that names another tenant, which need not exist, in each of its requests does not take the
// whole reserve.
func TestMadeUpTenantsDoNotTakeTheReserve(t *testing.T) {
	t.Parallel()
	const most = 64
	l := NewLimiter(most)
	attacker, victim := addressFor("attacker"), addressFor("victim")
	for maphash.Comparable(l.seed, attacker)%buckets == maphash.Comparable(l.seed, victim)%buckets {
		attacker = attacker.Next()
	}
	var tickets []*Ticket
	for i := range 10 * most {
		ticket := &Ticket{}
		if l.Enter(ticket, Interactive, fmt.Sprintf("t_madeup%d", i), attacker) == nil {
			tickets = append(tickets, ticket)
		}
	}
	if got, want := len(tickets), most+leastReserve/reserveParts; got != want {
		t.Errorf("%d requests of one address with a tenant each were admitted, want %d: all places and a fourth of the reserve", got, want)
	}
	tenant := "t_victim"
	for l.bucket(tenant).Load() > 0 {
		tenant += "s"
	}
	var ticket Ticket
	if err := l.Enter(&ticket, Interactive, tenant, victim); err != nil {
		t.Errorf("Enter of another tenant from another address: %v, want a place of the reserve", err)
	}
	ticket.Pause()
	ticket.Resume()
	ticket.Done()
	for _, ticket := range tickets {
		ticket.Done()
	}
	for i := range l.kept {
		if n := l.kept[i].Load(); n != 0 {
			t.Errorf("%d places of the reserve are in use after all requests have ended, want none", n)
		}
	}
	if n := l.InFlight(); n != 0 {
		t.Errorf("%d requests in progress after all have ended, want none", n)
	}
}

// Background requests are refused before others, probes never: they do not enter.
func TestBackgroundIsRefusedFirst(t *testing.T) {
	t.Parallel()
	l := NewLimiter(100)
	tickets := make([]Ticket, 0, 100)
	enter := func(class Class) error {
		var ticket Ticket
		err := l.Enter(&ticket, class, "t_a", addressFor("t_a"))
		if err == nil {
			tickets = append(tickets, ticket)
		}
		return err
	}
	for range 75 {
		if err := enter(Interactive); err != nil {
			t.Fatalf("Enter below the limit: %v", err)
		}
	}
	if err := enter(Background); api.ErrorCode(err) != api.CodeOverloaded {
		t.Errorf("Enter of a background request at 75 of 100 = %v, want %s", err, api.CodeOverloaded)
	}
	if err := enter(Interactive); err != nil {
		t.Errorf("Enter of an interactive request at 75 of 100: %v", err)
	}
	if err := tickets[0].Demote(); api.ErrorCode(err) != api.CodeOverloaded {
		t.Errorf("Demote at 76 of 100 = %v, want %s", err, api.CodeOverloaded)
	}
	for range 24 {
		if err := enter(Interactive); err != nil {
			t.Fatalf("Enter below the limit: %v", err)
		}
	}
	err := enter(Interactive)
	var coded *api.Error
	if !errors.As(err, &coded) || coded.Code != api.CodeOverloaded || coded.RetryAfter < time.Second {
		t.Errorf("Enter at the limit = %v, want %s with a time to retry after", err, api.CodeOverloaded)
	}
	for i := range tickets {
		tickets[i].Done()
		tickets[i].Done() // again: nothing happens
	}
	if n := l.InFlight(); n != 0 {
		t.Errorf("%d requests in progress after all have ended, want 0", n)
	}
}

// The time in which a body arrives is not the platform's, and its request takes no place.
func TestPausedRequestsDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(0)
		var ticket Ticket
		if err := l.Enter(&ticket, Interactive, "t_a", addressFor("t_a")); err != nil {
			t.Fatalf("Enter: %v", err)
		}
		time.Sleep(time.Millisecond)
		ticket.Pause()
		if n := l.InFlight(); n != 0 {
			t.Errorf("%d requests in progress during a pause, want 0", n)
		}
		time.Sleep(time.Minute)
		ticket.Resume()
		time.Sleep(time.Millisecond)
		ticket.Started()
		if ticket.worked != 2*time.Millisecond {
			t.Errorf("work of a request with a pause of a minute = %s, want 2ms", ticket.worked)
		}
		ticket.Resume() // after the end
		if n := l.InFlight(); n != 0 {
			t.Errorf("%d requests in progress after the end, want 0", n)
		}
	})
}
