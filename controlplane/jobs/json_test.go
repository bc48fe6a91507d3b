package jobs

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/rest"
)

const activationID = "0f9a1c52-6f5e-4b6b-9c7e-2f8a3f0d1e11"

// TestFetchedJobsAreWrittenAsEncodingJSONDoes holds the hand-written JSON to the
// type, whatever fields it may get.
func TestFetchedJobsAreWrittenAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	full := api.FetchedJob{
		ID: activationID, Namespace: "payments", Queue: "emails", Payload: json.RawMessage(`{"a":[1,"<é>"]}`), Attempt: 2, MaxAttempts: 4,
		LeaseEpoch: 3, LeaseExpiresMS: 1_700_000_000_000, Checkpoint: json.RawMessage(`[1]`), Tags: map[string]string{"a\"b": "<\n>", "c": ""},
		ParentID: activationID, CallbackOf: activationID, Provider: "main", Model: `a"<model>`, CreatedAtMS: 1_600_000_000_000, Spec: &api.JobSpec{},
	}
	for v, i := reflect.ValueOf(full), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("field %s is zero, want a value to compare", v.Type().Field(i).Name)
		}
	}
	for _, jobs := range [][]api.FetchedJob{{}, {full}, {{Payload: json.RawMessage("null")}, full}} {
		got, err := appendFetched(nil, jobs)
		if err != nil {
			t.Fatalf("appendFetched: %v", err)
		}
		want, err := api.EncodeJSON(map[string]any{"jobs": jobs})
		if err != nil {
			t.Fatalf("EncodeJSON: %v", err)
		}
		if !bytes.Equal(got, append(want, '\n')) {
			t.Errorf("appendFetched: got %s, want %s and a line break", got, want)
		}
	}
}

// BenchmarkJobJSON measures reading and writing bodies of 64 jobs: what HTTP costs
// beside the queue.
func BenchmarkJobJSON(b *testing.B) {
	const size = 64
	job := `{"payload":{"to":"somebody@example.com","subject":"hello","body":"` + strings.Repeat("0", 50) + `"}}`
	enqueue := []byte(`{"jobs":[` + strings.TrimSuffix(strings.Repeat(job+",", size), ",") + `]}`)
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
	enqueues, acks := rest.NewDecoder[enqueueBody](), rest.NewDecoder[ackBody]()
	for name, do := range map[string]func() error{
		"read enqueue":   func() error { _, err := enqueues.Decode(enqueue); return err },
		"read ack":       func() error { _, err := acks.Decode(ack); return err },
		"write fetched":  func() error { _, err := appendFetched(nil, fetched); return err },
		"write outcomes": func() error { _, err := api.EncodeJSON(map[string]any{"jobs": outcomes}); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := do(); err != nil {
					b.Fatalf("%s: got error %v, want none", name, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/job")
		})
	}
}
