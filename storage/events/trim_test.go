package events

import (
	"fmt"
	"testing"
	"time"
)

// A process removes old events of a tenant at most once in trimInterval, and remembers a bounded
// number of tenants.
func TestTrimIsDueNowAndThen(t *testing.T) {
	t.Parallel()
	l := New(nil)
	begin := time.Unix(1_800_000_000, 0)
	for _, step := range []struct {
		tenant string
		after  time.Duration
		want   bool
	}{
		{"t_a", 0, true},
		{"t_a", time.Second, false},
		{"t_b", time.Second, true},
		{"t_a", trimInterval - time.Millisecond, false},
		{"t_a", trimInterval, true},
		{"t_a", trimInterval + time.Second, false},
		{"t_b", trimInterval + time.Second, true},
	} {
		if got := l.trimDue(step.tenant, begin.Add(step.after)); got != step.want {
			t.Errorf("trimDue(%s) after %s: got %t, want %t", step.tenant, step.after, got, step.want)
		}
	}
	for i := range 2 * maxTrims {
		l.trimDue(fmt.Sprint("t_", i), begin)
		if len(l.trimmed) > maxTrims {
			t.Fatalf("got %d remembered tenants, want at most %d", len(l.trimmed), maxTrims)
		}
	}
}
