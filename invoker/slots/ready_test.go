package slots

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newReady(queues ...string) *Ready[string] {
	r := NewReady(func(q string) string { return q[:1] })
	for _, q := range queues {
		r.Add(q)
	}
	return r
}

// turn returns the next turn, in order.
func turn(r *Ready[string]) []string {
	out := r.Turn()
	slices.Sort(out)
	return out
}

func TestReadyGoesByTurns(t *testing.T) {
	t.Parallel()
	r := newReady("a1", "a2", "a3", "a1")
	step := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, turn(r)); diff != "" {
			t.Errorf("turn (-want +got):\n%s", diff)
		}
	}
	step("a1")
	r.Add("b1")
	step("a2", "b1")
	r.Remove("a2")
	r.Keep("b1")
	r.Add("b1") // it has new work
	step("a3", "b1")
	step()
	r.Again()
	if got := r.Waiting(); got != 3 {
		t.Errorf("Waiting after Again = %d, want 3", got)
	}
	r.Remove("a3")
	r.Keep("c1") // is visited only again
	step("a1", "b1")
	for _, q := range []string{"a1", "b1", "c1", "d1"} {
		r.Remove(q)
	}
	if !r.Empty() || r.Waiting() != 0 {
		t.Errorf("Empty = %t and Waiting = %d after all are removed, want true and 0", r.Empty(), r.Waiting())
	}
}

// A tenant's queue is visited in the next turn, however many queues of another tenant wait, and each
// of those is visited once in a pass.
func TestReadyDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	r, seen := newReady(), map[string]int{}
	const crowd = 1000
	for i := range crowd {
		r.Add(fmt.Sprint("a", i))
	}
	for i := range crowd {
		if i%10 == 0 {
			r.Add("b")
		}
		got := turn(r)
		if want := 1 + (10-i%10)/10; len(got) != want {
			t.Fatalf("turn %d has the queues %v, want %d of them", i, got, want)
		}
		for _, q := range got {
			seen[q]++
		}
	}
	if len(seen) != crowd+1 || seen["b"] != crowd/10 {
		t.Errorf("%d queues were visited, that of the other tenant %d times, want all of %d, and %d times", len(seen), seen["b"], crowd+1, crowd/10)
	}
}
