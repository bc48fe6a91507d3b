package platformtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// slowSource is TypeScript of some hundred bytes that would keep the compiler busy for hours.
func slowSource(i int) string {
	return fmt.Sprintf("export default () => %d\nlet x = ", i) + strings.Repeat("a?(b):c=>", 40) + "d" + strings.Repeat(":e", 40)
}

// publisher publishes versions of a function for a tenant.
type publisher struct{ function *client.Function }

func newPublisher(t *testing.T, server *platformtest.Server, tenant string) *publisher {
	t.Helper()
	ns := namespaceOf(t, server, tenant)
	if _, err := ns.CreateFunction(t.Context(), client.NewFunction{Name: "f", Entry: "function.ts"}); err != nil {
		t.Fatalf("CreateFunction: %v", err)
	}
	return &publisher{ns.Function("f")}
}

// namespaceOf returns the default namespace of any tenant, as the platform's administrator.
func namespaceOf(t *testing.T, server *platformtest.Server, tenant string) *client.Namespace {
	t.Helper()
	c, err := client.New(server.URL, client.Config{MaxAttempts: 1, Key: server.Key()})
	if err != nil {
		t.Fatalf("client.New: %v", err)
	}
	return c.Tenant(tenant).Namespace(platformtest.Namespace)
}

// publish uploads a source and publishes it.
func (p *publisher) publish(ctx context.Context, source string) error {
	draft, err := p.function.UploadFiles(ctx, map[string][]byte{"function.ts": []byte(source)})
	if err != nil {
		return err
	}
	_, err = p.function.Publish(ctx, client.Publish{DraftID: draft.DraftID, Config: json.RawMessage(`{}`)})
	return err
}

// durations runs f n times and returns the durations, the shortest first.
func durations(t *testing.T, n int, f func(i int) error) []time.Duration {
	t.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		begin := time.Now()
		if err := f(i); err != nil {
			t.Fatalf("call %d: got error %v, want none", i, err)
		}
		took[i] = time.Since(begin)
	}
	slices.Sort(took)
	return took
}

// attack runs f from several clients without a pause until the test, or stop, ends it. count
// returns how often it has run.
func attack(t *testing.T, clients int, f func(ctx context.Context, i int)) (count *atomic.Int64, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	count = new(atomic.Int64)
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			for ctx.Err() == nil {
				f(ctx, int(count.Add(1)))
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wait.Wait() })
	t.Cleanup(stop)
	return count, stop
}

// neighbourFloor is added to three times the quiet duration: the attackers' processes take
// their share of the processors of a small machine, and one check that has just begun.
const neighbourFloor = 2 * time.Second

// TestNeighboursPublish: two tenants publish, without a pause, sources that take the compiler
// hours. A third one publishes beside them, and waits for neither.
func TestNeighboursPublish(t *testing.T) {
	server := platformtest.Config{Store: storagetest.Redis(t).URL, Args: []string{"--auth", "off"}}.Serve(t)
	third := newPublisher(t, server, "t_third01")
	source := func(i int) string { return fmt.Sprintf("export default (event: { n: number }) => event.n + %d", i) }
	publish := func(i int) error { return third.publish(t.Context(), source(i)) }
	quiet := durations(t, 6, publish)
	var refused atomic.Int64
	for _, tenant := range []string{"t_slow001", "t_slow002"} {
		p := newPublisher(t, server, tenant)
		attack(t, 3, func(ctx context.Context, i int) {
			err := p.publish(ctx, slowSource(i))
			if ctx.Err() != nil {
				return
			}
			// The limit of processor time is met first, unless other work leaves the child little.
			if api.ErrorCode(err) != api.CodeValidationSource || !strings.Contains(err.Error(), "reading and compiling it took more than") {
				t.Errorf("publish of a slow source: got error %v, want code %s and the limit", err, api.CodeValidationSource)
			}
			refused.Add(1)
		})
	}
	platformtest.Eventually(t, 3*time.Minute, "a slow source of each attacker was refused", func() error {
		if n := refused.Load(); n < 2 {
			return fmt.Errorf("%d were refused", n)
		}
		return nil
	})
	loud := durations(t, 12, func(i int) error { return publish(100 + i) })
	median, worst := 3*quiet[len(quiet)/2]+neighbourFloor, 3*quiet[len(quiet)-1]+2*neighbourFloor
	t.Logf("quiet %v, beside the attack %v", quiet, loud)
	if loud[len(loud)/2] > median || loud[len(loud)-1] > worst {
		t.Errorf("publish beside two attackers: got a median of %v and at most %v, want %v and %v", loud[len(loud)/2], loud[len(loud)-1], median, worst)
	}
}

// TestNeighboursSchemas: one tenant sends the largest calls that it can make of schemas. Each is
// refused soon, and another tenant's calls of its queue go on beside them.
func TestNeighboursSchemas(t *testing.T) {
	server := platformtest.Config{Store: storagetest.Redis(t).URL, Args: []string{"--auth", "off"}}.Serve(t)
	victim, attacker := namespaceOf(t, server, "t_third01"), namespaceOf(t, server, "t_slow001")
	enqueue := func(int) error {
		_, err := victim.Queue("mails").Enqueue(t.Context(), "", api.NewJob{Payload: json.RawMessage(`1`)})
		return err
	}
	quiet := durations(t, 40, enqueue)
	var slowest atomic.Int64
	count, stop := attack(t, 2, func(ctx context.Context, i int) {
		jobs := make([]api.NewJob, api.MaxEnqueueSchemas)
		for k := range jobs {
			jobs[k].Payload = json.RawMessage(`1`)
			jobs[k].ResultSchema = fmt.Appendf(nil, `{"properties":{%s"n":{"maximum":%d}}}`, schemaMembers(i), k)
		}
		begin := time.Now()
		_, err := attacker.Queue("mails").Enqueue(ctx, "", jobs...)
		if ctx.Err() != nil {
			return
		}
		if api.ErrorCode(err) != api.CodeBodyLimit {
			t.Errorf("Enqueue of %d large schemas = error %v, want code %s", len(jobs), err, api.CodeBodyLimit)
		}
		slowest.Store(max(slowest.Load(), int64(time.Since(begin))))
	})
	loud := durations(t, 100, enqueue)
	stop()
	most := 3*quiet[len(quiet)*9/10] + neighbourFloor
	t.Logf("quiet p90 %v, beside the attack %v; %d calls of the attacker, the slowest %v", quiet[len(quiet)*9/10], loud[90], count.Load(), time.Duration(slowest.Load()))
	if loud[90] > most {
		t.Errorf("enqueue beside the attack: got p90 %v, want at most %v", loud[90], most)
	}
}

// schemaMembers are members of an object, 7 KB of them, that no other i has.
func schemaMembers(i int) string {
	var all strings.Builder
	for n := range 120 {
		fmt.Fprintf(&all, `"p%d_%d":{"type":"string","pattern":"^[a-z]{1,8}$"},`, i, n)
	}
	return all.String()
}
