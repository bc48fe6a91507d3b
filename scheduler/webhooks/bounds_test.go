package webhooks_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api/webhook"
	dispatch "github.com/codesous/sous/scheduler/webhooks"
)

// TestRetryAfter: the time that a receiver asks for is respected after 429 and 503, up to an hour, and
// ignored where it is shorter than the delay, damaged, or not meant.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for name, tt := range map[string]struct {
		status       int
		after        string
		least, large time.Duration // between the attempt and the next one
	}{
		"seconds":             {http.StatusTooManyRequests, "120", 120 * time.Second, 120 * time.Second},
		"seconds of 503":      {http.StatusServiceUnavailable, "90", 90 * time.Second, 90 * time.Second},
		"date":                {http.StatusServiceUnavailable, date(30 * time.Minute), 20 * time.Minute, 30 * time.Minute},
		"too many seconds":    {http.StatusTooManyRequests, "86400", time.Hour, time.Hour},
		"more than a number":  {http.StatusTooManyRequests, "99999999999999999999", 0, time.Second},
		"date in a year":      {http.StatusTooManyRequests, date(365 * 24 * time.Hour), time.Hour, time.Hour},
		"date that passed":    {http.StatusTooManyRequests, date(-time.Hour), 0, time.Second},
		"negative":            {http.StatusTooManyRequests, "-60", 0, time.Second},
		"damaged":             {http.StatusTooManyRequests, "soon", 0, time.Second},
		"of another status":   {http.StatusInternalServerError, "120", 0, time.Second},
		"less than the delay": {http.StatusTooManyRequests, "0", 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redis(t))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tt.after)
				w.WriteHeader(tt.status)
			}))
			defer server.Close()
			f.create(t, "one", server.URL, nil)
			f.happen(t, "a")
			stop := f.run(t, dispatch.Config{})
			var items []webhook.Delivery
			eventually(t, "attempt", func() bool {
				var err error
				items, _, err = f.hooks.Deliveries(t.Context(), f.tenant, "one", "", 10)
				return err == nil && len(items) > 0
			})
			stop()
			first := items[len(items)-1]
			got := time.Duration(first.NextAtMS-first.AtMS) * time.Millisecond
			if first.Result != webhook.Retrying || got < tt.least || got > tt.large {
				t.Errorf("got the next attempt %s after the first one (%s), want it after %s to %s", got, first.Result, tt.least, tt.large)
			}
		})
	}
}

// gate is a receiver whose requests wait. It counts those in progress by their paths.
type gate struct {
	*httptest.Server

	mu      sync.Mutex
	waiting map[string]int
	peaks   map[string]int // by path; "" is that of all
	total   int
	begun   map[string]int
}

// newGate returns a gate whose requests wait for open, which is closed, unless status returns a status.
func newGate(t *testing.T, open <-chan struct{}, status func(path string, n int) int) *gate {
	t.Helper()
	g := &gate{waiting: map[string]int{}, peaks: map[string]int{}, begun: map[string]int{}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		path := req.URL.Path
		g.mu.Lock()
		g.begun[path]++
		g.waiting[path]++
		g.total++
		g.peaks[path], g.peaks[""] = max(g.peaks[path], g.waiting[path]), max(g.peaks[""], g.total)
		answer := status(path, g.begun[path])
		g.mu.Unlock()
		if answer == 0 {
			<-open
			answer = http.StatusOK
		}
		g.mu.Lock()
		g.waiting[path]--
		g.total--
		g.mu.Unlock()
		w.WriteHeader(answer)
	}))
	t.Cleanup(g.Close)
	return g
}

// state returns how many requests wait, and the peaks.
func (g *gate) state() (total int, peaks map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	peaks = map[string]int{}
	for path, n := range g.peaks {
		peaks[path] = n
	}
	return g.total, peaks
}

// TestBoundsOfATenant: a tenant has 16 requests in progress, and each of its webhooks 4, however many
// deliveries wait.
func TestBoundsOfATenant(t *testing.T) {
	t.Parallel()
	const hooks, subjects = 6, 10
	f := newFixture(t, redis(t))
	open := make(chan struct{})
	g := newGate(t, open, func(string, int) int { return 0 })
	for i := range hooks {
		f.create(t, fmt.Sprint("w", i), g.URL+fmt.Sprint("/w", i), nil)
	}
	for i := range subjects {
		f.happen(t, fmt.Sprint("f", i))
	}
	f.run(t, dispatch.Config{Timeout: waitLimit})
	eventually(t, "16 requests at the same time", func() bool { n, _ := g.state(); return n == 16 })
	f.happen(t, "later") // the dispatcher looks for more to send
	eventually(t, "delivery that waits", func() bool { return f.get(t, "w0").Pending == subjects+1 })
	close(open)
	eventually(t, "end of all deliveries", func() bool {
		for i := range hooks {
			if f.get(t, fmt.Sprint("w", i)).Pending > 0 {
				return false
			}
		}
		return true
	})
	_, peaks := g.state()
	for path, n := range peaks {
		if path == "" && n != 16 || path != "" && n > 4 {
			t.Errorf("got %d requests of %q at the same time, want 16 of the tenant and at most 4 of a webhook", n, path)
		}
	}
	if len(peaks) != hooks+1 {
		t.Errorf("got requests of %d webhooks, want %d", len(peaks)-1, hooks)
	}
}

// TestBoundsOfFailingWebhooks: a webhook whose last attempt failed has one request in progress, all of
// them 8, and the others deliver meanwhile.
func TestBoundsOfFailingWebhooks(t *testing.T) {
	t.Parallel()
	const failing, subjects = 12, 5
	f := newFixture(t, redis(t))
	open := make(chan struct{})
	defer close(open)
	g := newGate(t, open, func(path string, _ int) int {
		if path == "/well" {
			return http.StatusOK
		}
		return 0
	})
	for i := range failing {
		name := fmt.Sprint("w", i)
		f.create(t, name, g.URL+"/"+name, nil)
		f.fail(t, name)
	}
	f.create(t, "well", g.URL+"/well", nil)
	for i := range subjects {
		f.happen(t, fmt.Sprint("f", i))
	}
	f.run(t, dispatch.Config{Timeout: waitLimit})
	eventually(t, "8 requests that wait, and deliveries of the other webhook", func() bool {
		n, _ := g.state()
		well := f.get(t, "well")
		return n == 8 && well.LastStatus == http.StatusOK && well.Pending == 0
	})
	f.happen(t, "later") // the dispatcher looks for more to send
	eventually(t, "delivery of a later event", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.begun["/well"] == subjects+1
	})
	_, peaks := g.state()
	for path, n := range peaks {
		if strings.HasPrefix(path, "/w") && path != "/well" && n > 1 {
			t.Errorf("got %d requests of the failing webhook %s at the same time, want 1", n, path)
		}
	}
	if n := len(peaks) - 2; n != 8 {
		t.Errorf("got requests of %d failing webhooks, want 8", n)
	}
}

// fail has a webhook fail since a minute ago.
func (f *fixture) fail(t *testing.T, name string) {
	t.Helper()
	records, err := f.hooks.All(t.Context(), f.tenant)
	if err != nil {
		t.Fatalf("All: %v", err)
	}
	for i := range records {
		if records[i].Name != name {
			continue
		}
		state := f.store.Keys().Webhook(f.tenant, records[i].ID).State()
		if err := f.store.Client().HSet(t.Context(), state, "failing_since_ms", f.store.NowMS()-time.Minute.Milliseconds()).Err(); err != nil {
			t.Fatalf("HSet: %v", err)
		}
	}
}
