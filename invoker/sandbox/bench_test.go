package sandbox

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"go.uber.org/zap"
)

const benchSource = `export default (e, ctx) => ({ hello: e.name, n: e.list.length })`
const benchEvent = `{"name":"you","list":[1,2,3],"nested":{"a":true,"b":null,"c":"text"}}`

func benchPool(b *testing.B) *Pool {
	return newPool(b, func(c *Config) { c.Logger = zap.NewNop() })
}

// BenchmarkWarmCall is an acquisition, one activation and the release, with a
// small event, over one warm child and over several, each with a fresh global scope and
// with one that stays.
func BenchmarkWarmCall(b *testing.B) {
	for _, children := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("children=%d", children), func(b *testing.B) { benchWarmCall(b, children, false) })
		b.Run(fmt.Sprintf("instance/children=%d", children), func(b *testing.B) { benchWarmCall(b, children, true) })
	}
}

func benchWarmCall(b *testing.B, children int, instance bool) {
	p := benchPool(b)
	prog := program(b, "bench", benchSource)
	prog.Instance = instance
	warm := make([]*Sandbox, children)
	for i := range warm {
		warm[i] = acquire(b, p, prog)
	}
	for _, s := range warm {
		p.Release(s)
	}
	var next atomic.Int64
	b.ResetTimer()
	b.ReportAllocs()
	done := make(chan error, children)
	for range children {
		go func() {
			for next.Add(1) <= int64(b.N) {
				if err := once(b, p, prog); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range children {
		if err := <-done; err != nil {
			b.Fatalf("<-done: %v", err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func once(b *testing.B, p *Pool, prog *Program) error {
	s, err := p.Acquire(b.Context(), prog, nil)
	if err != nil {
		return err
	}
	defer p.Release(s)
	if r := s.Run(b.Context(), call(benchEvent, time.Second)); r.Status != api.StatusSuccess {
		return fmt.Errorf("%+v", r.Error)
	}
	return nil
}

// BenchmarkColdStart is the first call of a version that was compiled before: with
// a spare at hand, and with a spawn.
func BenchmarkColdStart(b *testing.B) {
	for _, spares := range []int{2, -1} {
		b.Run(fmt.Sprintf("spares=%d", max(spares, 0)), func(b *testing.B) {
			p := newPool(b, func(c *Config) { c.Logger, c.Spares, c.MaxProcesses = zap.NewNop(), spares, 8 })
			prog := program(b, "bench", benchSource)
			if err := p.Check(b.Context(), prog); err != nil {
				b.Fatalf("p.Check: %v", err)
			}
			times := make([]time.Duration, 0, b.N)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				waitSpares(b, p)
				prog.Key = fmt.Sprint("bench", i)
				start := time.Now()
				b.StartTimer()
				if err := once(b, p, prog); err != nil {
					b.Fatalf("once: %v", err)
				}
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// waitSpares waits until the keeper has nothing to do.
func waitSpares(t testing.TB, p *Pool) {
	t.Helper()
	eventually(t, func() bool { return p.Stats().Spares == p.cfg.Spares })
}

// eventually polls until what holds.
func eventually(t testing.TB, what func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !what(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("condition is still false after a minute, want true")
		}
	}
}
