package metrics

import (
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
	s := NewSeries(2, func(k string) string { return "of " + k }, func(k string) { closed = append(closed, k) },
		func(string) string { return "other" })
	for _, step := range []struct {
		after     time.Duration
		key, want string
		closed    []string
	}{
		{0, "a", "of a", nil},
		{0, "b", "of b", nil},
		{0, "c", "of other", nil},
		{59 * time.Minute, "a", "of a", nil},
		{59 * time.Minute, "c", "of other", nil},                       // b is idle for 59 minutes
		{60*time.Minute - time.Second, "c", "of other", nil},           // too soon to look again
		{60 * time.Minute, "c", "of c", []string{"b"}},                 // b was touched an hour ago, a was not
		{60 * time.Minute, "b", "of other", []string{"b"}},             // full again
		{61*time.Minute + time.Second, "b", "of other", []string{"b"}}, // nothing is idle
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
	s := NewSeries(8, func(int) *int { return new(int) }, func(int) {}, func(int) int { return -1 })
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
		t.Errorf("%d are kept", len(s.kept))
	}
}
