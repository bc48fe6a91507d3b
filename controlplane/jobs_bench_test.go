package controlplane_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// queueServer serves the job queue on a redis-server.
func queueServer(b *testing.B) *controlplane.Server {
	b.Helper()
	store := storagetest.Open(b, storage.Config{URL: storagetest.Redis(b).URL, ScriptPrelude: "--\n"})
	broker, err := queue.New(b.Context(), store, queue.Config{})
	if err != nil {
		b.Fatalf("New: %v", err)
	}
	b.Cleanup(broker.Close)
	server, err := controlplane.New(b.Context(), store, immediate{}, broker, controlplane.Config{Auth: access.Off})
	if err != nil {
		b.Fatalf("New: %v", err)
	}
	b.Cleanup(server.Close)
	return server
}

// benchJobs is the body of an enqueue of n small jobs.
func benchJobs(n int) string {
	one := `{"payload":{"to":"somebody@example.com","subject":"hello","body":"` + strings.Repeat("0", 50) + `"}}`
	return `{"jobs":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`
}

// BenchmarkJobs takes jobs from enqueue to ack through connections, in calls of 64,
// with 8 workers that fetch, acknowledge and add what they fetch. It reports jobs a
// second; client, server and store share the machine.
func BenchmarkJobs(b *testing.B) {
	const size, workers = 64, 8
	server := httptest.NewUnstartedServer(nil)
	server.Config = queueServer(b).HTTPServer("")
	server.Start()
	b.Cleanup(server.Close)
	base := server.URL + "/v1/tenants/" + storagetest.Tenant(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers}}
	b.Cleanup(client.CloseIdleConnections)
	post := func(path, body string, into any) error {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, base+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode >= 300 {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
		return json.NewDecoder(response.Body).Decode(into)
	}
	jobs := benchJobs(size)
	var done atomic.Int64
	var work sync.WaitGroup
	begin := time.Now()
	for w := range workers {
		work.Go(func() {
			fetch := fmt.Sprintf(`{"namespace":"payments","queues":["emails"],"worker_id":"w%d","count":%d}`, w, size)
			for done.Load() < int64(b.N) {
				var ignored json.RawMessage
				var got struct {
					Jobs []struct {
						ID         string `json:"id"`
						LeaseEpoch int64  `json:"lease_epoch"`
					}
				}
				if err := post("/namespaces/payments/queues/emails/jobs", jobs, &ignored); err != nil {
					b.Errorf("post: %v", err)
					return
				}
				if err := post("/jobs:fetch", fetch, &got); err != nil {
					b.Errorf("post: %v", err)
					return
				}
				if len(got.Jobs) == 0 {
					continue
				}
				var acks strings.Builder
				for i, job := range got.Jobs {
					fmt.Fprintf(&acks, `%s{"id":"%s","lease_epoch":%d}`, map[bool]string{true: ","}[i > 0], job.ID, job.LeaseEpoch)
				}
				if err := post("/jobs:ack", `{"acks":[`+acks.String()+`]}`, &ignored); err != nil {
					b.Errorf("post: %v", err)
					return
				}
				done.Add(int64(len(got.Jobs)))
			}
		})
	}
	work.Wait()
	b.ReportMetric(float64(done.Load())/time.Since(begin).Seconds(), "jobs/s")
}
