package sweeper

import (
	"context"
	"testing"
	"time"
)

// shortWalker makes a pass of left chunks, of one read each.
type shortWalker struct{ left, read int }

func (c *shortWalker) chunk(context.Context, time.Time, int, *Counts) (chunk, error) {
	c.left--
	c.read++
	return chunk{reads: 1, end: c.left == 0}, nil
}

func (*shortWalker) stop() {}

// TestWalkersShareReads: the reads that one walker does not need are for the others, and a step
// takes no more than its reads.
func TestWalkersShareReads(t *testing.T) {
	t.Parallel()
	const reads = 100
	for name, left := range map[string][3]int{
		"the last is short":  {1000, 1000, 5},
		"the first is short": {5, 1000, 1000},
		"only one is long":   {1000, 5, 5},
	} {
		cfg, err := Config{Reads: reads}.withDefaults()
		if err != nil {
			t.Fatalf("withDefaults: %v", err)
		}
		s := &Sweeper{cfg: cfg, metrics: newSweepMetrics()}
		var walkers [3]*shortWalker
		for i := range walkers {
			walkers[i] = &shortWalker{left: left[i]}
			s.routes = append(s.routes, &progress{name: "walker", share: 1, walker: walkers[i]})
		}
		if _, err := s.RunOnce(t.Context(), time.UnixMilli(1e12)); err != nil {
			t.Fatalf("RunOnce: %v", err)
		}
		total := 0
		for i, c := range walkers {
			total += c.read
			if c.read < min(left[i], reads/3) {
				t.Errorf("%s: got %d reads for walker %d, want its share, at least %d", name, c.read, i, min(left[i], reads/3))
			}
		}
		// Each may begin one more than its share.
		if total < reads || total > reads+len(walkers) {
			t.Errorf("%s: got %d reads taken, want %d, or one more for each walker", name, total, reads)
		}
	}
}
