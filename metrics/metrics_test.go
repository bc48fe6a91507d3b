package metrics_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/codesous/sous/metrics"
)

func TestLoopCountsRounds(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	loop, other := metrics.NewLoop("a"), metrics.NewLoop("b")
	if err := metrics.Register(reg, loop, other); err != nil {
		t.Fatalf("metrics.Register: %v", err)
	}
	loop.Round(time.Now(), nil)
	loop.Round(time.Now(), nil)
	loop.Round(time.Now(), errors.New("failed"))
	const want = `
# HELP sous_loop_rounds_total Rounds of a background loop.
# TYPE sous_loop_rounds_total counter
sous_loop_rounds_total{loop="a",outcome="error"} 1
sous_loop_rounds_total{loop="a",outcome="ok"} 2
sous_loop_rounds_total{loop="b",outcome="error"} 0
sous_loop_rounds_total{loop="b",outcome="ok"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "sous_loop_rounds_total"); err != nil {
		t.Errorf("GatherAndCompare: %v", err)
	}
}

// A loop that fails, or stands still, falls behind; a good round makes up for it.
func TestLoopLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // under a clock of its own
		reg := prometheus.NewRegistry()
		loop := metrics.NewLoop("a")
		if err := metrics.Register(reg, loop); err != nil {
			t.Fatalf("metrics.Register: %v", err)
		}
		lag := func() float64 {
			families, err := reg.Gather()
			if err != nil {
				t.Fatalf("Gather: %v", err)
			}
			for _, f := range families {
				if f.GetName() == "sous_loop_lag_seconds" {
					return f.GetMetric()[0].GetGauge().GetValue()
				}
			}
			t.Fatal("no lag")
			return 0
		}
		time.Sleep(time.Second)
		if got := lag(); got != 1 {
			t.Errorf("lag a second after the start: got %g s, want 1", got)
		}
		loop.Round(time.Now(), errors.New("failed"))
		time.Sleep(time.Second)
		if got := lag(); got != 2 {
			t.Errorf("lag a second after a round that failed: got %g s, want 2", got)
		}
		loop.Round(time.Now(), nil)
		if got := lag(); got != 0 {
			t.Errorf("lag at the end of a good round: got %g s, want 0", got)
		}
	})
}

func TestCache(t *testing.T) {
	t.Parallel()
	cache := otter.Must(&otter.Options[string, string]{
		MaximumWeight: 100, StatsRecorder: stats.NewCounter(),
		Weigher: func(_, v string) uint32 { return uint32(len(v)) },
	})
	reg := prometheus.NewRegistry()
	if err := metrics.Register(reg, metrics.NewCache("c", cache)); err != nil {
		t.Fatalf("metrics.Register: %v", err)
	}
	cache.GetIfPresent("k")
	cache.Set("k", "four")
	cache.GetIfPresent("k")
	cache.GetIfPresent("k")
	cache.CleanUp() // the cache weighs its entries in the background
	const want = `
# HELP sous_cache_bytes Size of a cache that has a limit in bytes.
# TYPE sous_cache_bytes gauge
sous_cache_bytes{cache="c"} 4
# HELP sous_cache_entries Entries of a cache.
# TYPE sous_cache_entries gauge
sous_cache_entries{cache="c"} 1
# HELP sous_cache_evictions_total Entries removed from a cache for lack of room or for their age.
# TYPE sous_cache_evictions_total counter
sous_cache_evictions_total{cache="c"} 0
# HELP sous_cache_requests_total Reads of a cache, by whether it had the entry.
# TYPE sous_cache_requests_total counter
sous_cache_requests_total{cache="c",result="hit"} 2
sous_cache_requests_total{cache="c",result="miss"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Errorf("GatherAndCompare: %v", err)
	}
}

// Nothing to register with is no failure; a name that is taken is one.
func TestRegister(t *testing.T) {
	t.Parallel()
	if err := metrics.Register(nil, metrics.NewLoop("a")); err != nil {
		t.Errorf("metrics.Register: %v", err)
	}
	if metrics.Register(prometheus.NewRegistry(), metrics.NewLoop("a"), metrics.NewLoop("a")) == nil {
		t.Error("the same loop was registered twice")
	}
}

func TestMemoMakesOnce(t *testing.T) {
	t.Parallel()
	var memo metrics.Memo[string, *int]
	var wg sync.WaitGroup
	made := make(chan string, 100)
	for range 8 {
		wg.Go(func() {
			for _, key := range []string{"a", "b", "a"} {
				memo.Get(key, func(k string) *int { made <- k; return new(int) })
			}
		})
	}
	wg.Wait()
	if len(made) != 2 {
		t.Errorf("made %d times, want once for each of 2 keys", len(made))
	}
}
