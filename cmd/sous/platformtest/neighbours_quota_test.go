package platformtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/cmd/sous/platformtest"
)

const (
	// filler writes to cs.kv until it is stopped, and returns the code with which it was.
	filler = `export default async () => {
		const value = 'x'.repeat(16000);
		const run = Date.now() + '-' + Math.random();
		for (let i = 0; i < 400; i++) {
			try { await cs.kv.set('fill:' + run + ':' + i, value); } catch (err) { return {code: err.code}; }
		}
		return {code: ''};
	};`
	quotaConfig = `{"timeout_ms": 20000, "max_concurrency": 4, "capabilities": {"kv": {"prefixes": ["fill:"], "ops": ["set"]}}}`
)

// floods are what the attacker fills or calls. Each returns the code with which it was stopped, ""
// as long as it was not.
func floods(tenant *client.Tenant, url string) map[string]func(ctx context.Context, i int) string {
	ns := tenant.Namespace(platformtest.Namespace)
	codeOf := func(err error) string { return string(api.ErrorCode(err)) }
	return map[string]func(context.Context, int) string{
		"functions": func(ctx context.Context, i int) string {
			_, err := ns.CreateFunction(ctx, client.NewFunction{Name: fmt.Sprintf("f%d", i)})
			return codeOf(err)
		},
		"jobs": func(ctx context.Context, _ int) string {
			jobs := make([]api.NewJob, 100)
			for n := range jobs {
				jobs[n].Payload = json.RawMessage(`"` + strings.Repeat("x", 100) + `"`)
			}
			_, err := ns.Queue("flood").Enqueue(ctx, "", jobs...)
			return codeOf(err)
		},
		"schedules": func(ctx context.Context, i int) string {
			_, err := ns.CreateSchedule(ctx, api.NewSchedule{
				Name: fmt.Sprintf("s%d", i), EverySeconds: 1, Queue: &api.ScheduleQueue{Name: "flood"}, Payload: json.RawMessage(`"` + strings.Repeat("x", 60_000) + `"`),
			})
			return codeOf(err)
		},
		"calls": func(ctx context.Context, _ int) string {
			return webCode(ctx, url+"/v1/web/"+attackerTenant+"/default/quick/prod")
		},
		"kv": func(ctx context.Context, _ int) string {
			answer, err := ns.Function("filler").Invoke(ctx, client.InvokeOptions{Ref: api.Ref{Alias: "prod"}, Event: json.RawMessage(`{}`)})
			if err != nil {
				return ""
			}
			var result struct{ Code string }
			_ = json.Unmarshal(answer.Result, &result)
			return result.Code
		},
	}
}

// webCode calls an endpoint and returns the code of its problem, "" for an answer of the function.
func webCode(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	body, err := io.ReadAll(resp.Body)
	if errors.Join(err, resp.Body.Close()) != nil || resp.StatusCode < 400 {
		return ""
	}
	return platformtest.Answer{Body: string(body)}.Code()
}

// TestNeighboursQuotas: a tenant that fills cs.kv, queues, functions and schedules and calls as fast
// as it can is stopped by its limits, each with its code. The calls of another tenant beside it all
// succeed, and 99% of them take at most three times as long as before, or as without the attacker.
func TestNeighboursQuotas(t *testing.T) {
	t.Parallel()
	limits := quota.TenantLimits{Functions: 20, Jobs: 2000, ScheduleBytes: 20 << 20, KVBytes: 4 << 20, Calls: 50, CPU: 30}
	want := map[string]string{
		"functions": "CS_QUOTA_EXCEEDED", "jobs": "CS_QUOTA_EXCEEDED", "schedules": "CS_QUOTA_EXCEEDED", "kv": "CS_QUOTA_EXCEEDED", "calls": "CS_QUOTA_RATE_LIMIT",
	}
	server := platformtest.Serve(t, redis(t))
	v := newGreeter(t, server, true)
	tenant := server.APIOf(t, attackerTenant)
	server.PublishTo(t, tenant, "quick", "", map[string]string{"function.js": `export default () => 'ok';`})
	server.PublishTo(t, tenant, "filler", quotaConfig, map[string]string{"function.js": filler})
	if _, err := tenant.SetLimits(t.Context(), limits); err != nil {
		t.Fatalf("SetLimits: %v", err)
	}
	quiet := v.calls(200)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	stopped := map[string]string{}
	var attack sync.WaitGroup
	for name, flood := range floods(tenant, server.URL) {
		attack.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if code := flood(ctx, i); code != "" && ctx.Err() == nil {
					mu.Lock()
					if code == want[name] || stopped[name] == "" {
						stopped[name] = code
					}
					mu.Unlock()
				}
			}
		})
	}
	v.unharmed(quiet, v.calls(250))
	platformtest.Eventually(t, time.Minute, "every flood is stopped", func() error {
		mu.Lock()
		defer mu.Unlock()
		if !equalCodes(stopped, want) {
			return fmt.Errorf("they are stopped with %v, want %v", stopped, want)
		}
		return nil
	})
	stop()
	attack.Wait()
	usage, err := tenant.Usage(t.Context(), client.UsageOptions{})
	if err != nil {
		t.Fatalf("Usage: %v", err)
	}
	for _, q := range usage.Quotas {
		// The schedules that were admitted add jobs, which are never refused.
		if q.Limit > 0 && q.Name.Period() == 0 && q.Name != quota.Jobs && q.Used > q.Limit+q.Limit/20 {
			t.Errorf("%s: got a use of %d, want at most the limit of %d", q.Name, q.Used, q.Limit)
		}
	}
}

func equalCodes(got, want map[string]string) bool {
	for name, code := range want {
		if got[name] != code {
			return false
		}
	}
	return true
}
