package webhooks_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/api/event"
	dispatch "github.com/codesous/sous/scheduler/webhooks"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// BenchmarkDeliveries measures the deliveries a second of all webhooks of a tenant that select every
// event, while the events are appended. Each has a receiver on this machine, which reads the body and
// answers 204. An operation is an event, delivered to each webhook.
//
//	go test ./scheduler/webhooks -run '^$' -bench Deliveries -benchtime 5000x
func BenchmarkDeliveries(b *testing.B) {
	for _, hooks := range []int{1, 20} {
		b.Run(fmt.Sprint(hooks), func(b *testing.B) {
			f := newFixture(b, storage.Config{URL: storagetest.Redis(b).URL, ScriptPrelude: "--\n"}) // without the checks of tests
			want, delivered, all := int64(b.N*hooks), &atomic.Int64{}, make(chan struct{})
			for i := range hooks {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					_, _ = io.Copy(io.Discard, req.Body) // a broken request is repeated
					w.WriteHeader(http.StatusNoContent)
					if delivered.Add(1) == want {
						close(all)
					}
				}))
				b.Cleanup(server.Close)
				f.create(b, fmt.Sprint("w", i), server.URL, nil)
			}
			stop := f.run(b, dispatch.Config{})
			defer stop() // before the receivers close
			b.ResetTimer()
			for at := 0; at < b.N; at += 100 {
				pipe := f.store.Client().Pipeline()
				for i := range min(100, b.N-at) {
					f.log.Append(b.Context(), pipe, f.tenant, event.Change{
						Type: event.FunctionCreated, Of: "functions/shop", ID: fmt.Sprint("f", at+i), AtMS: f.store.NowMS(), Data: event.Data{Namespace: "shop"},
					})
				}
				if _, err := pipe.Exec(b.Context()); err != nil {
					b.Fatalf("Exec: %v", err)
				}
			}
			<-all
			b.ReportMetric(float64(want)/b.Elapsed().Seconds(), "deliveries/s")
		})
	}
}
