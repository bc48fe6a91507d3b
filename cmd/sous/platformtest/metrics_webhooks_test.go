package platformtest_test

import (
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/metrics/metricstest"
)

// webhooks has an event delivered, and then removes events that the webhook has not passed.
func (w *work) webhooks() {
	tenant, ctx := w.server.API(w.t), w.t.Context()
	if _, err := tenant.Webhook("all").Create(ctx, webhook.HookSettings{URL: w.upstream, Events: []string{"*"}}); err != nil {
		w.t.Fatalf("Create: %v", err)
	}
	platformtest.Eventually(w.t, time.Minute, "an event is delivered", func() error {
		if _, err := tenant.Webhook("all").Test(ctx); err != nil {
			return err
		}
		w.server.Publish(w.t, "announced", `{}`, map[string]string{"function.js": "export default () => " + time.Now().Format(`"15:04:05.000"`)})
		seen := scrape(w.t, w.server.Output())
		if metricstest.Sum(seen["sous_webhook_deliveries_total"], "result=delivered") == 0 || metricstest.Sum(seen["sous_webhook_lag_seconds"]) == 0 {
			return errors.New("none was delivered")
		}
		return nil
	})
	options, err := goredis.ParseURL(w.store.URL)
	if err != nil {
		w.t.Fatalf("ParseURL: %v", err)
	}
	client := goredis.NewClient(options)
	defer func() { _ = client.Close() }()
	if err := client.XTrimMaxLen(ctx, "cs:events:"+platformtest.Tenant, 0).Err(); err != nil {
		w.t.Fatalf("XTrimMaxLen: %v", err)
	}
	platformtest.Eventually(w.t, time.Minute, "the gap is counted", func() error {
		if metricstest.Sum(scrape(w.t, w.server.Output())["sous_webhook_gaps_total"]) == 0 {
			return errors.New("it is not counted")
		}
		return nil
	})
}
