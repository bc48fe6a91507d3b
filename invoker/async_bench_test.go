package invoker_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// BenchmarkAsync takes invocations from their acceptance to their end: producers
// and a worker in this process, a store beside it.
func BenchmarkAsync(b *testing.B) {
	for _, places := range []int{4, 16} {
		b.Run(fmt.Sprint("places=", places), func(b *testing.B) {
			store := storagetest.Open(b, storage.Config{URL: storagetest.Redis(b).URL, ScriptPrelude: "--\n"})
			bench := newBench(b, store)
			config := asynchronous(1)
			config.MaxConcurrency, config.MemoryMB = places, api.MinMemoryMB
			bench.publish("echo", `export default (e) => e;`, config)
			bench.work()
			bench.ends(bench.enqueue("echo", "0"))
			var made atomic.Int64
			ids := make([]string, b.N)
			b.ResetTimer()
			begin := time.Now()
			var producers sync.WaitGroup
			for range 16 {
				producers.Go(func() {
					for n := made.Add(1) - 1; n < int64(b.N); n = made.Add(1) - 1 {
						ids[n] = bench.enqueue("echo", `{"to":"somebody@example.com"}`)
					}
				})
			}
			producers.Wait()
			accepted := float64(b.N) / time.Since(begin).Seconds()
			for _, id := range ids {
				bench.eventually("all have ended", func() bool { return bench.stored(id).Status == api.StatusSuccess })
			}
			b.ReportMetric(accepted, "accepted/s")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "done/s")
		})
	}
}
