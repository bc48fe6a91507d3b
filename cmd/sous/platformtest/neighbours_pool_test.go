package platformtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// getOf calls the endpoint of a function and returns the status, 0 without an answer.
func getOf(ctx context.Context, c *http.Client, s *platformtest.Server, tenant, name string) (status int, took time.Duration) {
	url := s.URL + "/v1/web/" + tenant + "/" + platformtest.Namespace + "/" + name + "/prod"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0
	}
	began := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return 0, 0
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err != nil || resp.Body.Close() != nil {
		return 0, 0
	}
	return resp.StatusCode, time.Since(began)
}

// TestNeighboursSandboxes: a tenant fills the sandboxes with calls that sleep, or that compute
// without end, and repeats those that are refused. Calls of another tenant find room and
// processors beside it.
func TestNeighboursSandboxes(t *testing.T) {
	t.Parallel()
	const steady = 200
	for _, attack := range []struct {
		name, source string
		calls        int
	}{
		{"sleep", `export default () => new Promise((r) => setTimeout(r, 300_000));`, 130},
		{"spin", `export default () => { for (;;); };`, 100},
	} {
		t.Run(attack.name, func(t *testing.T) {
			s := platformtest.Serve(t, storagetest.Redis(t).URL)
			publishFor(t, s, attackerTenant, "attack", `{"timeout_ms": 600000, "memory_mb": 16, "max_concurrency": 200}`, attack.source)
			publishFor(t, s, victimTenant, "first", `{"memory_mb": 16}`, `export default () => 1;`)
			v := newVictim(t, s, true, `{"memory_mb": 16}`, `export default () => { let n = 0; for (let i = 0; i < 5_000; i++) n += i; return n; };`)
			quiet := v.calls(steady)

			ctx, stop := context.WithCancel(t.Context())
			var attackers sync.WaitGroup
			c := &http.Client{Transport: &http.Transport{}}
			for range attack.calls {
				attackers.Go(func() {
					for ctx.Err() == nil {
						getOf(ctx, c, s, attackerTenant, "attack")
					}
				})
			}
			defer func() {
				stop()
				attackers.Wait()
				c.CloseIdleConnections()
			}()
			// 80 of 100 places are what one tenant may hold; 3 are spares and the nursery.
			platformtest.Eventually(t, time.Minute, "the attack holds its share", func() error {
				if got := len(s.Sandboxes(t)); got < 80 {
					return fmt.Errorf("%d sandboxes, want at least 80", got)
				}
				return nil
			})
			v.unharmed(quiet, v.calls(steady))
			status, took := getOf(t.Context(), c, s, victimTenant, "first")
			t.Logf("the first call of another function took %s", took)
			if status != http.StatusOK {
				t.Errorf("the first call of the victim's other function: got status %d, want 200", status)
			}
		})
	}
}
