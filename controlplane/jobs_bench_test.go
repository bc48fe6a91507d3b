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

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
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
		b.Fatal(err)
	}
	b.Cleanup(broker.Close)
	server, err := controlplane.New(b.Context(), store, immediate{}, broker, controlplane.Config{Auth: controlplane.AuthOff})
	if err != nil {
		b.Fatal(err)
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
					b.Error(err)
					return
				}
				if err := post("/jobs:fetch", fetch, &got); err != nil {
					b.Error(err)
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
					b.Error(err)
					return
				}
				done.Add(int64(len(got.Jobs)))
			}
		})
	}
	work.Wait()
	b.ReportMetric(float64(done.Load())/time.Since(begin).Seconds(), "jobs/s")
}

// BenchmarkJobJSON measures reading and writing bodies of 64 jobs: what HTTP costs
// beside the queue.
func BenchmarkJobJSON(b *testing.B) {
	const size = 64
	enqueue := []byte(benchJobs(size))
	one := `{"id":"` + activationID + `","lease_epoch":1}`
	ack := []byte(`{"acks":[` + strings.TrimSuffix(strings.Repeat(one+",", size), ",") + `]}`)
	fetched := make([]api.FetchedJob, size)
	for i := range fetched {
		fetched[i] = api.FetchedJob{ID: activationID, Namespace: "payments", Queue: "emails", Attempt: 1, MaxAttempts: 4, LeaseEpoch: 1,
			Payload: json.RawMessage(`{"to":"somebody@example.com","subject":"hello","body":"` + strings.Repeat("0", 50) + `"}`)}
	}
	outcomes := make([]api.JobOutcome, size)
	for i := range outcomes {
		outcomes[i] = api.JobOutcome{ID: activationID, OK: true, State: api.JobCompleted}
	}
	readEnqueue, readAck := controlplane.JobReaders()
	for name, do := range map[string]func() error{
		"read enqueue":   func() error { return readEnqueue(enqueue) },
		"read ack":       func() error { return readAck(ack) },
		"write fetched":  func() error { _, err := controlplane.AppendFetched(nil, fetched); return err },
		"write outcomes": func() error { _, err := api.EncodeJSON(map[string]any{"jobs": outcomes}); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := do(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/job")
		})
	}
}
