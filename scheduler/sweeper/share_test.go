package sweeper

import (
	"context"
	"testing"
	"time"
)

// shortCourse ends after so many reads, of one each.
type shortCourse struct{ left, read int }

func (c *shortCourse) piece(context.Context, time.Time, int, *Counts) (piece, error) {
	c.left--
	c.read++
	return piece{reads: 1, end: c.left == 0}, nil
}

func (*shortCourse) stop() {}

// What one course leaves of a step's reads is for the others, wherever they stand, and a
// step takes no more than its reads.
func TestCoursesShareWhatOneLeaves(t *testing.T) {
	t.Parallel()
	const reads = 100
	for name, left := range map[string][3]int{
		"the last is short":  {1000, 1000, 5},
		"the first is short": {5, 1000, 1000},
		"only one is long":   {1000, 5, 5},
	} {
		cfg, err := Config{Reads: reads}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		s := &Sweeper{cfg: cfg, metrics: newSweepMetrics()}
		var courses [3]*shortCourse
		for i := range courses {
			courses[i] = &shortCourse{left: left[i]}
			s.laps = append(s.laps, &lap{name: "lap", share: 1, course: courses[i]})
		}
		if _, err := s.RunOnce(t.Context(), time.UnixMilli(1e12)); err != nil {
			t.Fatal(err)
		}
		total := 0
		for i, c := range courses {
			total += c.read
			if c.read < min(left[i], reads/3) {
				t.Errorf("%s: course %d had %d reads, less than its share", name, i, c.read)
			}
		}
		// Each may begin one more than its share.
		if total < reads || total > reads+len(courses) {
			t.Errorf("%s: %d of %d reads were taken", name, total, reads)
		}
	}
}
