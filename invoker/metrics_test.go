package invoker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// watched is a bench with what it exports and logs, and the way to its store,
// which may refuse the records of activations that run or succeeded.
func watched(t *testing.T) (*bench, *prometheus.Registry, *observer.ObservedLogs, *deafProxy) {
	t.Helper()
	reg := prometheus.NewRegistry()
	core, logged := observer.New(zapcore.InfoLevel)
	server := storagetest.Redis(t)
	proxy := newDeafProxy(t, fmt.Sprintf("127.0.0.1:%d", server.Port), []byte(`"deadline_ms":`))
	b := newBench(t, storagetest.Open(t, storage.Config{URL: "redis://" + proxy.addr}), func(c *invoker.Config) {
		c.Metrics, c.Logger = reg, zap.New(core)
	})
	return b, reg, logged, proxy
}

func TestInvocationsAreCounted(t *testing.T) {
	t.Parallel()
	b, reg, _, _ := watched(t)
	config := defaults()
	config.TimeoutMS, config.MaxConcurrency = 100, 1
	b.publish("f", `export default (e) => { if (e === "fail") throw new Error("no"); while (e === "spin"); return e; };`, config)
	for _, event := range []string{`"ok"`, `"ok"`, `"fail"`, `"spin"`} {
		b.invoke("f", event)
	}
	count := func(labels ...string) float64 {
		return metricstest.Value(t, reg, "sous_invocations_total", append(labels, "tenant="+b.tenant, "namespace=default", "function=f", "version=1", "trigger=api")...)
	}
	for status, want := range map[string]float64{"success": 2, "error": 1, "timeout": 1} {
		if got := count("status=" + status); got != want {
			t.Errorf("%g of status %s, want %g", got, status, want)
		}
		if got := metricstest.Value(t, reg, "sous_invocation_duration_seconds", "trigger=api", "status="+status); got != want {
			t.Errorf("%g durations of status %s, want %g", got, status, want)
		}
	}
	if spent := metricstest.Value(t, reg, "sous_invocation_seconds_total", "function=f", "status=timeout"); spent < 0.09 || spent > 5 {
		t.Errorf("got %g s for one timeout of 100 ms, want 0.09 to 5", spent)
	}
	if got := metricstest.Value(t, reg, "sous_invocations_in_flight"); got != 0 {
		t.Errorf("got %g invocations in flight at the end, want none", got)
	}
	if hits := metricstest.Value(t, reg, "sous_cache_requests_total", "cache=resolutions"); hits < 4 {
		t.Errorf("got %g reads of resolutions, want at least 4", hits)
	}
}

func TestRefusedAndReplayedInvocationsAreCounted(t *testing.T) {
	t.Parallel()
	b, reg, _, _ := watched(t)
	b.publish("f", `export default (e) => e;`, defaults())
	refused := func(function string, code api.Code) float64 {
		return metricstest.Value(t, reg, "sous_invocations_refused_total", "function="+function, "code="+string(code))
	}
	if _, err := b.engine.Invoke(t.Context(), b.invocation("none", "1")); err == nil || refused("_other", api.CodeFunctionNotFound) != 1 {
		t.Errorf("Invoke of a missing function: got error %v, want a refusal that is counted once", err)
	}
	denied := b.invocation("f", "1")
	denied.Access = api.AccessPublic
	if _, err := b.engine.Invoke(t.Context(), denied); err == nil || refused("f", api.CodeAuthnRequired) != 1 {
		t.Errorf("Invoke without a key: got error %v, want a refusal that is counted once", err)
	}
	again := b.invocation("f", "1")
	again.IdempotencyKey = "k"
	for range 2 {
		if _, err := b.engine.Invoke(t.Context(), again); err != nil {
			t.Fatalf("Invoke: %v", err)
		}
	}
	if got := metricstest.Value(t, reg, "sous_invocations_replayed_total"); got != 1 {
		t.Errorf("got %g replays, want 1", got)
	}
	again.Event = json.RawMessage("2")
	if _, err := b.engine.Invoke(t.Context(), again); err == nil || metricstest.Value(t, reg, "sous_invocations_refused_total", "code="+string(api.CodeIdempotencyMismatch)) != 1 {
		t.Errorf("Invoke with a key in use: got error %v, want a refusal that is counted once", err)
	}
	if got := metricstest.Value(t, reg, "sous_invocations_total"); got != 1 {
		t.Errorf("%g invocations ran, want 1", got)
	}
}

// A record that the store does not take is seen to be late until it does.
func TestLateRecordsAreMeasured(t *testing.T) {
	t.Parallel()
	b, reg, logged, proxy := watched(t)
	config := defaults()
	config.TimeoutMS = 60_000
	b.publish("f", `export default () => 1;`, config)
	proxy.mode.Store(refusing)
	if _, err := b.engine.Invoke(t.Context(), b.invocation("f", "1")); api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Fatalf("Invoke: got error %v, want code %s", err, api.CodeStoreUnavailable)
	}
	if got := metricstest.Value(t, reg, "sous_records_late"); got != 1 {
		t.Errorf("got %g late records, want 1", got)
	}
	b.eventually("it is tried again", func() bool { return metricstest.Value(t, reg, "sous_records_retries_total") >= 2 })
	if lag := metricstest.Value(t, reg, "sous_records_lag_seconds"); lag <= 0 {
		t.Errorf("got a lag of %g s, want more than 0", lag)
	}
	if got := metricstest.Value(t, reg, "sous_invocations_total", "function=f", "status=success"); got != 1 {
		t.Errorf("%g invocations, want the one that ran", got)
	}
	proxy.mode.Store(passing)
	b.eventually("the record has arrived", func() bool { return metricstest.Value(t, reg, "sous_records_late") == 0 })
	if n := logged.FilterMessage("activation").Len(); n != 1 {
		t.Errorf("%d lines, want one", n)
	}
	for _, name := range []string{"sous_records_lag_seconds", "sous_records_lost_total"} {
		if got := metricstest.Value(t, reg, name); got != 0 {
			t.Errorf("got %s = %g at the end, want 0", name, got)
		}
	}
}

// Each activation leaves one line, with what finds it again and nothing of what
// its function was given or gave.
func TestActivationsAreLogged(t *testing.T) {
	t.Parallel()
	b, _, logged, _ := watched(t)
	b.publish("f", `export default (e) => { if (e === "secret-fail") throw new Error("secret-error"); return "secret-result"; };`, defaults())
	good, bad := b.invoke("f", `"secret-event"`), b.invoke("f", `"secret-fail"`)
	lines := logged.FilterMessage("activation").All()
	if len(lines) != 2 {
		t.Fatalf("got %d lines, want 2", len(lines))
	}
	for n, out := range []*api.Outcome{good, bad} {
		got := lines[n].ContextMap()
		want := map[string]any{
			"activation_id": out.Activation.ActivationID, "request_id": "req_test", "tenant": b.tenant, "namespace": namespace,
			"function": "f", "version": int64(1), "trigger": "api", "status": string(out.Activation.Status), "cold_start": n == 0,
		}
		if out.Activation.Error != nil {
			want["error"] = string(api.ErrException)
		}
		if took, ok := got["duration_ms"].(float64); !ok || took <= 0 {
			t.Errorf("got duration_ms %v, want more than 0", got["duration_ms"])
		}
		delete(got, "duration_ms")
		for name, value := range want {
			if got[name] != value {
				t.Errorf("line %d: %s is %v, want %v", n, name, got[name], value)
			}
		}
		if len(got) != len(want) {
			t.Errorf("line %d: got fields %v, want those of %v", n, got, want)
		}
		for name, value := range got {
			if text, _ := value.(string); strings.Contains(text, "secret") {
				t.Errorf("line %d: got %s = %q, want no secret", n, name, text)
			}
		}
	}
}
