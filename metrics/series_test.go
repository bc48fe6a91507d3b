package metrics

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch = time.UnixMilli(1_800_000_000_000)

// Beyond the bound, keys share one series. A key that was not used for an hour loses its
// series, but only when another key needs it.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	var closed []string
	s := NewSeries(2, SeriesOf[string, string]{
		Open: func(k string) string { return "of " + k }, Close: func(k string) { closed = append(closed, k) },
		Tenant: func(k string) string { return k }, // each key is a tenant's only one
		Other:  func(_, tenant string) string { return tenant },
	})
	for _, step := range []struct {
		after     time.Duration
		key, want string
		closed    []string
	}{
		{0, "a", "of a", nil},
		{0, "b", "of b", nil},
		{0, "c", "of _other", nil},
		{59 * time.Minute, "a", "of a", nil},
		{59 * time.Minute, "c", "of _other", nil},                       // b is idle for 59 minutes
		{60*time.Minute - time.Second, "c", "of _other", nil},           // too soon to look again
		{60 * time.Minute, "c", "of c", []string{"b"}},                  // b was touched an hour ago, a was not
		{60 * time.Minute, "b", "of _other", []string{"b"}},             // full again
		{61*time.Minute + time.Second, "b", "of _other", []string{"b"}}, // nothing is idle
		{60*time.Minute + 2*time.Hour, "b", "of b", []string{"b", "a", "c"}},
	} {
		if got := s.Get(step.key, epoch.Add(step.after)); got != step.want {
			t.Errorf("%s after %s: %q, want %q", step.key, step.after, got, step.want)
		}
		if len(closed) == 3 { // a map has no order
			closed = []string{"b", "a", "c"}
		}
		if diff := cmp.Diff(step.closed, closed); diff != "" {
			t.Errorf("%s after %s: closed (-want +got):\n%s", step.key, step.after, diff)
		}
	}
}

func TestSeriesAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := NewSeries(8, SeriesOf[int, *int]{
		Open: func(int) *int { return new(int) }, Close: func(int) {},
		Tenant: func(k int) string { return strconv.Itoa(k % 3) },
		Other:  func(int, string) int { return -1 },
	})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for n := range 2000 {
				if s.Get((worker+n)%16, epoch.Add(time.Duration(n)*time.Minute)) == nil {
					t.Error("nothing counts")
				}
			}
		})
	}
	wg.Wait()
	if len(s.kept) > 8 {
		t.Errorf("got %d series kept, want at most 8", len(s.kept))
	}
}

// tenantKey is a key of a function, or of all others of its tenant.
type tenantKey struct{ tenant, function string }

// However many keys a tenant makes, another one has room for its own, and the tenant's
// further keys count for the tenant.
func TestSeriesLeaveRoomForOtherTenants(t *testing.T) {
	t.Parallel()
	s := NewSeries(1000, SeriesOf[tenantKey, string]{
		Open:   func(k tenantKey) string { return k.tenant + "." + k.function },
		Close:  func(k tenantKey) { t.Errorf("%v was closed, want it kept", k) },
		Tenant: func(k tenantKey) string { return k.tenant },
		Other:  func(_ tenantKey, tenant string) tenantKey { return tenantKey{tenant, Other} },
	})
	const each = 2000
	for tenant, most := range []int{500, 250, 125, 63, 31} {
		name, own := "t_"+strconv.Itoa(tenant), 0
		for i := range each {
			key := tenantKey{name, strconv.Itoa(i)}
			switch got := s.Get(key, epoch); got {
			case name + "." + key.function:
				own++
			case name + "." + Other:
			default:
				t.Fatalf("Get(%v) = %q, want a value of the tenant", key, got)
			}
		}
		if own < most-1 || own > most {
			t.Errorf("tenant %d has %d keys of its own, want about %d", tenant, own, most)
		}
	}
	if got, want := s.Get(tenantKey{"t_victim", "f"}, epoch), "t_victim.f"; got != want {
		t.Errorf("Get of a tenant with one function = %q, want %q", got, want)
	}
	// A tenant's key is found again, and names that belong to no tenant take no room.
	if got, want := s.Get(tenantKey{"t_0", "3"}, epoch), "t_0.3"; got != want {
		t.Errorf("Get = %q, want %q", got, want)
	}
	before := len(s.kept)
	if got, want := s.Get(tenantKey{Other, Other}, epoch), "_other._other"; got != want || len(s.kept) != before {
		t.Errorf("Get = %q with %d kept keys, want %q with %d", got, len(s.kept), want, before)
	}
}
