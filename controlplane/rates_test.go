package controlplane_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/admission"
	"github.com/codesous/sous/metrics/metricstest"
)

// A client that sends more requests a second than it may is slowed down and then refused. Its reads,
// its calls of functions and probes have limits of their own.
func TestClientsHaveRates(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	now := time.UnixMilli(1_760_000_000_000) // stands still: no place becomes free
	h := start(t, func(c *controlplane.Config) {
		c.Rates = admission.RateConfig{Reads: 10, Writes: 10}
		c.Clock = func() time.Time { return now }
		c.Metrics = reg
	})
	write := func() answer {
		return h.call(t, "POST", h.at("N/queues/emails/jobs"), `{"jobs":[{"payload":1}]}`)
	}
	begin := time.Now()
	for i := range 12 { // the last two wait 100 and 200 ms
		if got := write(); got.status != 201 {
			t.Errorf("write %d: got status %d, want 201", i, got.status)
		}
	}
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("12 writes took %s, want at least 300ms", took)
	}
	refused := write()
	refused.refused(t, 429, api.CodeCapacityLimit)
	var p struct {
		RetryAfterMS int64 `json:"retry_after_ms"`
	}
	err := json.Unmarshal(refused.body, &p)
	if err != nil || p.RetryAfterMS != 300 || refused.header.Get("Retry-After") != "1" {
		t.Errorf("refused: got retry_after_ms %d, Retry-After %s and error %v, want 300 and 1", p.RetryAfterMS, refused.header.Get("Retry-After"), err)
	}
	if n := metricstest.Value(t, reg, "sous_http_refused_total", "reason=rate"); n != 1 {
		t.Errorf("sous_http_refused_total: got %v, want 1", n)
	}
	answered(t, h.call(t, "GET", h.at("N/queues/emails"), ""))
	for range 20 {
		answered(t, h.call(t, "POST", "/v1/web/"+h.tenant+"/default/greet/prod", "{}"))
		answered(t, h.call(t, "GET", "/healthz", ""))
	}
	for range 12 { // a fetch of jobs counts as a read
		fetched := h.call(t, "POST", h.at("T/jobs:fetch"), `{"namespace":"payments","queues":["none"],"worker_id":"w1"}`)
		if fetched.status == 429 {
			return
		}
	}
	t.Error("12 fetches after a read: none was refused, want one with 429")
}
