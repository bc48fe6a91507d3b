package slots

import (
	"testing"
	"testing/synctest"
)

// TestJobsOfOneTenantLeaveRoom for those of others, also while they are only being settled.
func TestJobsOfOneTenantLeaveRoom(t *testing.T) {
	t.Parallel()
	j := NewJobs(10, 80, 100)
	if got := j.Free("a"); got != 8 {
		t.Errorf("free for the first tenant: got %d, want 8", got)
	}
	for range 8 {
		j.Take("a")
	}
	if a, b := j.Free("a"), j.Free("b"); a != 0 || b != 2 {
		t.Errorf("free beside 8 jobs of a: got %d for a and %d for b, want 0 and 2", a, b)
	}
	for range 8 {
		j.Release("a")
		j.Take("a")
	}
	for range 8 {
		j.Release("a")
	}
	if a, b := j.Free("a"), j.Free("b"); a != 0 || b != 4 {
		t.Errorf("free beside 16 jobs of a that are settled: got %d for a and %d for b, want 0 and 4", a, b)
	}
	for range 16 {
		j.Done("a")
	}
	if got := j.Free("a"); got != 8 || len(j.tenants) != 0 {
		t.Errorf("free after the end: got %d and %d tenants, want 8 and none", got, len(j.tenants))
	}
}

// TestOneSlot is any tenant's.
func TestOneSlot(t *testing.T) {
	t.Parallel()
	if got := NewJobs(1, 80, 100).Free("a"); got != 1 {
		t.Errorf("free of one slot: got %d, want 1", got)
	}
}

// TestWaitingOfATenantIsBounded over all of its versions.
func TestWaitingOfATenantIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // no time passes
		l := New()
		waiting := 0
		for _, version := range []string{"a/1", "a/2", "a/3", "a/4", "a/5"} {
			for range maxWaiting {
				if _, w, err := l.enter(version, 1); err != nil {
					if waiting != maxWaitingOfTenant {
						t.Fatalf("refused with %d waiting: %v, want %d", waiting, err, maxWaitingOfTenant)
					}
				} else if w != nil {
					waiting++
				}
			}
		}
		if waiting != maxWaitingOfTenant {
			t.Errorf("got %d waiting, want %d", waiting, maxWaitingOfTenant)
		}
		for range 2 {
			if _, _, err := l.enter("b/1", 1); err != nil {
				t.Errorf("another tenant: %v", err)
			}
		}
	})
}
