package models_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/invoker/models/modelstest"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/storagetest"
)

// TestRequestsThatDoNotEndWell: a request that was sent counts its input, whatever became of the answer,
// unless the provider refused it.
func TestRequestsThatDoNotEndWell(t *testing.T) {
	t.Parallel()
	garbage := func(w http.ResponseWriter, _ *modelstest.Request) { _, _ = fmt.Fprint(w, "data: <html>\n\n") }
	for name, c := range map[string]struct {
		answer  modelstest.Answer
		entries int
	}{
		"malformed":        {garbage, 1},
		"a broken answer":  {func(http.ResponseWriter, *modelstest.Request) { panic(http.ErrAbortHandler) }, 1},
		"ended by caller":  {nil, 1},
		"refused":          {modelstest.Refused(400, "invalid_request_error", "bad"), 0},
		"a status of load": {modelstest.Overloaded(), 0},
	} {
		for _, op := range []string{"chat", "stream", "embed"} {
			t.Run(name+"/"+op, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				f := modelstest.New(t, c.answer)
				limited := at(f, ai.KindOpenAI, 0)
				limited.OutputTokensPerMinute = 1_000_000
				d.put("main", limited)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if c.answer == nil {
					f.Then(func(w http.ResponseWriter, r *modelstest.Request) {
						cancel()
						modelstest.Silent(t, make(chan struct{}))(w, r)
					})
				}
				var err error
				switch op {
				case "chat":
					_, err = d.client.Chat(ctx, d.caller(), []byte(hello), "main")
				case "stream":
					_, err = d.client.Stream(ctx, d.caller(), []byte(hello), "main")
				case "embed":
					_, err = d.client.Embed(ctx, d.caller(), []byte(`{"input":["hello, hello"]}`), "main")
				}
				if err == nil || len(d.spent) != c.entries || c.entries > 0 && (d.spent[0].InputTokens == 0 || d.spent[0].OutputTokens != 0) {
					t.Errorf("got error %v and usage %+v, want an error and %d entries, of input tokens", err, d.spent, c.entries)
				}
			})
		}
	}
}

// TestProbesWithoutResult: a probe that ends for a reason of the caller makes room for another at once.
func TestProbesWithoutResult(t *testing.T) {
	t.Parallel()
	d, gone := newDesk(t), make(chan struct{})
	f := modelstest.New(t, modelstest.RateLimited(0.01), modelstest.Silent(t, gone), modelstest.Text(1, 1, "yes"))
	d.put("main", at(f, ai.KindOpenAI, 0))
	d.ask("main")
	registry, err := providers.NewRegistry(d.store)
	if err != nil {
		t.Fatalf("NewRegistry: %v", err)
	}
	v, err := registry.View(t.Context(), d.tenant)
	if err != nil {
		t.Fatalf("View: %v", err)
	}
	storagetest.Eventually(t, func() bool { return d.store.NowMS() > v.Circuit("main").UntilMS })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := d.client.Chat(ctx, d.caller(), []byte(hello), "main")
		ended <- err
	}()
	storagetest.Eventually(t, func() bool { return len(f.Requests()) == 2 })
	cancel()
	if err := <-ended; err == nil {
		t.Error("got no error of the probe, want one")
	}
	began := time.Now()
	if got := d.ask("main"); got != "main/m1 yes" || time.Since(began) > 10*time.Second {
		t.Errorf("got %s after %s, want an answer at once", got, time.Since(began))
	}
}
