package invoker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
)

// safe makes a key file and the secrets under it.
func safe(t testing.TB, s *storage.Store) *secrets.Secrets {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if _, err := secrets.Keygen(path, time.Now()); err != nil {
		t.Fatalf("secrets.Keygen: %v", err)
	}
	keys, err := secrets.OpenKeyFile(path, zap.NewNop())
	if err != nil {
		t.Fatalf("secrets.OpenKeyFile: %v", err)
	}
	return secrets.New(s, keys)
}

func (b *bench) secret(kept *secrets.Secrets, name, value string) {
	b.t.Helper()
	if _, _, err := kept.Put(b.t.Context(), secrets.Place{Tenant: b.tenant, Namespace: namespace}, name, value, "", secrets.Condition{}); err != nil {
		b.t.Fatalf("kept.Put: %v", err)
	}
}

// naming is a version's config that names secrets.
func naming(names ...string) api.VersionConfig {
	config := defaults()
	config.Capabilities.Secrets = names
	return config
}

// lines are all that an activation logged.
func (b *bench) lines(id string) string {
	b.t.Helper()
	lines, _, err := activations.NewLogs(b.store).Read(b.t.Context(), b.tenant, id, activations.LogCursor{}, 1000)
	if err != nil {
		b.t.Fatalf("Read: %v", err)
	}
	var all strings.Builder
	for _, line := range lines {
		all.Write(append(line.Message, '\n'))
	}
	return all.String()
}

const getSecret = `export default async (name) => { try { return await cs.secrets.get(name) } catch (e) { return e.code + ": " + e.message } }`

func withSafe(kept *secrets.Secrets, change ...func(*invoker.Config)) func(*invoker.Config) {
	return func(c *invoker.Config) {
		c.Secrets = kept
		for _, f := range change {
			f(c)
		}
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		kept := safe(t, s)
		b := newBench(t, s, withSafe(kept))
		b.secret(kept, "stripe", "sk_live_1")
		b.secret(kept, "odd", "\"ü\"\n€\x00")
		b.secret(kept, "other", "not for you")
		b.publish("f", getSecret, naming("stripe", "odd", "later"))
		for name, want := range map[string]string{
			"stripe": "sk_live_1",
			"odd":    "\"ü\"\n€\x00",
			"later":  "CS_RUNTIME_SECRET_NOT_FOUND: secret \"later\" does not exist in namespace default",
			"other":  `CS_RUNTIME_CAPABILITY_DENIED: secrets.get is not allowed: declare capabilities {"secrets": ["other"]} in the manifest`,
		} {
			var got string
			if err := json.Unmarshal(b.invoke("f", quote(name)).Activation.Result, &got); err != nil || got != want {
				t.Errorf("secret %s: got %q and error %v, want %q", name, got, err, want)
			}
		}
	})
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// No spelling reaches a secret that is not declared, nor one of another namespace,
// tenant or kind.
func TestHostileNamesOfSecrets(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		kept := safe(t, s)
		b := newBench(t, s, withSafe(kept))
		const value = "plaintext of the other secret"
		b.secret(kept, "other", value)
		b.secret(kept, "mine", "mine")
		for _, p := range []secrets.Place{{Tenant: b.tenant, Namespace: "payments"}, {Tenant: storagetest.Tenant(t), Namespace: namespace}} {
			if _, _, err := kept.Put(t.Context(), p, "declared", value, "", secrets.Condition{}); err != nil {
				t.Fatalf("kept.Put: %v", err)
			}
		}
		// What an older release may have let a version declare grants nothing.
		b.publish("f", getSecret, naming("mine", "*", "declared", "oth*", "payments:declared", "../payments/declared", "mine:x", "", "Other"))
		for _, name := range []string{
			"other", "Other", "OTHER", "other ", " other", "other\u0000", "\u0000other", "\u043ether", "o\u200bther", "other\u0301", "*", "oth*", "", "mine:", "mine/other", "mine\nother", "../other", "payments:declared", "declared",
			"../payments/declared", "{other}", "mine,other", "other@1", "__proto__", "constructor", `other","x":"`, strings.Repeat("other", 100000),
		} {
			a := b.invoke("f", quote(name)).Activation
			if text := string(a.Result) + fmt.Sprint(a.Error); strings.Contains(text, "plaintext of") || !strings.Contains(text, "CS_RUNTIME_") {
				t.Errorf("secret %.40q: got %.200s, want an error with a code CS_RUNTIME_ and no plaintext", name, text)
			}
		}
	})
}

// All that the platform keeps or says of what a function logs and throws is without
// secrets, in whatever form it writes them; what it returns is its own.
func TestSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		kept := safe(t, s)
		log := &memory{}
		b := newBench(t, s, withSafe(kept, func(c *invoker.Config) {
			c.Logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.DebugLevel))
		}))
		const value, second = "hunter\"2\\ü/+ secret", "-----BEGIN-----\nMIIBOgIBAAJBAKj3\n-----END-----"
		b.secret(kept, "a", value)
		b.secret(kept, "b", second)
		b.publish("logs", `export default async () => {
  const a = await cs.secrets.get("a"), b = await cs.secrets.get("b");
  console.log(a); console.log("it is " + a, { a, list: [a] }); console.error(new Error(a)); console.log("%s!", a);
  cs.log.info({ a, inner: JSON.stringify({ a }) }); cs.log.warn(a, b); cs.log.info({ [a]: 1 });
  console.log(b); cs.log.info({ line: b.split("\n")[1], b });
  console.log(btoa(unescape(encodeURIComponent(a))), encodeURIComponent(a), new URLSearchParams({ a }).toString());
  for (let i = 0; i < 5000; i++) console.log("x".repeat(i % 97) + a);
  return a;
};`, naming("a", "b"))
		a := b.invoke("logs", "null").Activation
		if string(a.Result) != quote(value) {
			t.Errorf("got result %s, error %+v, want the secret itself, %s", a.Result, a.Error, quote(value))
		}
		text := b.lines(a.ActivationID)
		if !strings.Contains(text, "it is ***") || !strings.Contains(text, `{"a":"***","inner":"{\"a\":\"***\"}"}`) {
			t.Errorf("got log %.3000s, want one with *** in place of the secret, as text and within JSON", text)
		}
		b.publish("throws", `export default async (how) => {
  const a = await cs.secrets.get("a");
  if (how === "long") throw new Error("x".repeat(65530) + a);
  const e = new TypeError("cannot use " + a); e.code = a; e.name = a;
  if (how === "value") throw a;
  if (how === "object") throw { message: a, stack: a, a };
  throw e;
};`, naming("a"))
		for _, how := range []string{"error", "value", "object", "long"} {
			a := b.invoke("throws", quote(how)).Activation
			stored := b.stored(a.ActivationID).Activation
			if diff := cmp.Diff(a, stored); diff != "" || a.Status != api.StatusError {
				t.Errorf("throw of %s: got %+v, want status error and the stored record (-got +stored):\n%s", how, a, diff)
			}
			text += fmt.Sprintf("%+v", stored.Error)
			if !strings.Contains(stored.Error.Message, "***") {
				t.Errorf("throw of %s: got message %.100s, want one with ***", how, stored.Error.Message)
			}
		}
		for _, part := range []string{"hunter", "MIIBOg", "aHVudGVy", "secret"} {
			if at := strings.Index(text+log.String(), part); at >= 0 {
				t.Errorf("got %q in ...%.200s, want it redacted", part, (text + log.String())[max(0, at-100):])
			}
		}
	})
}

// memory is a log in memory.
type memory struct {
	mu   sync.Mutex
	text strings.Builder
}

func (m *memory) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.Write(b)
}

func (*memory) Sync() error { return nil }

func (m *memory) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}

// A job's errors are an activation's.
func TestSecretsAreRedactedInJobs(t *testing.T) {
	t.Parallel()
	for name, config := range storagetest.OwnStores() { // the workers of other tests have no safe
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storagetest.Open(t, config(t))
			kept := safe(t, s)
			b := newBench(t, s, withSafe(kept))
			b.secret(kept, "a", "hunter2hunter2")
			config := naming("a")
			config.Retry = &api.Retry{MaxAttempts: 1}
			b.publish("f", `export default async () => { const a = await cs.secrets.get("a"); console.log(a); throw new Error("no " + a) }`, config)
			stop := b.work()
			defer stop()
			rec := b.ends(b.enqueue("f", "null"))
			job := b.job(rec.JobID)
			text := fmt.Sprintf("%+v %+v %s", rec.Error, job, b.lines(rec.ActivationID))
			if strings.Contains(text, "hunter2") || !strings.Contains(text, "no ***") {
				t.Errorf("got error, job and log %s, want *** in place of the secret", text)
			}
		})
	}
}

// The reasons of retried messages are in the errors of their jobs: of one job alone, and of
// several that a batch has together.
func TestSecretsAreRedactedInReasons(t *testing.T) {
	t.Parallel()
	// A store of its own: on a shared one, workers of other tests, with other keys, take the jobs.
	s := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
	kept := safe(t, s)
	b := newBench(t, s, withSafe(kept))
	b.secret(kept, "a", "hunter2hunter2")
	b.handlers = []string{api.HandlerQueue}
	b.publish("mailer", `export default { async queue(batch) {
		const reason = "no " + (await cs.secrets.get("a"));
		for (const m of batch.messages) { if (m.attempts === 1) m.retry({ reason, delaySeconds: 0 }) } } }`, naming("a"))
	for _, bodies := range [][]string{{"1"}, {"1", "2"}} {
		ids := b.mail(bodies...)
		b.trigger("mailer", trigger.NewQueueTrigger{})
		stop := b.work()
		b.inState(api.JobCompleted, ids)
		stop()
		for _, id := range ids {
			if got := fmt.Sprintf("%+v", b.job(id).Errors); strings.Contains(got, "hunter2") || !strings.Contains(got, "no ***") {
				t.Errorf("%d jobs: got errors %s, want *** in place of the secret", len(bodies), got)
			}
		}
	}
}

// Without a key file a function that names secrets runs, and its cs.secrets.get fails.
func TestSecretsWithoutAKey(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		b := newBench(t, s)
		b.secret(safe(t, s), "a", "alpha")
		b.publish("f", getSecret, naming("a", "gone"))
		for name, want := range map[string]string{"a": "CS_RUNTIME_SECRET_UNAVAILABLE: secrets cannot be opened here: the server has no key file", "gone": "CS_RUNTIME_SECRET_NOT_FOUND"} {
			if got := string(b.invoke("f", quote(name)).Activation.Result); !strings.Contains(got, want) {
				t.Errorf("secret %s: got %s, want a text that contains %q", name, got, want)
			}
		}
		other := newBench(t, s, withSafe(safe(t, s))) // another key
		other.tenant = b.tenant
		if got := string(other.invoke("f", `"a"`).Activation.Result); !strings.Contains(got, "CS_RUNTIME_SECRET_UNAVAILABLE") || !strings.Contains(got, "not in the key file") {
			t.Errorf("got %s with another key, want CS_RUNTIME_SECRET_UNAVAILABLE, not in the key file", got)
		}
	})
}

// A change made on one replica is seen on another, by its notice within a second, and
// where that is lost by the time for which secrets are believed.
func TestSecretsChangeOnEveryReplica(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		kept := safe(t, s)
		one := newBench(t, s, withSafe(kept))
		two := newBench(t, s, withSafe(kept, func(c *invoker.Config) { c.SecretsTTL = 1500 * time.Millisecond }))
		two.tenant = one.tenant
		one.secret(kept, "a", "value 1")
		one.publish("f", getSecret, naming("a"))
		read := func(b *bench) string { return string(b.invoke("f", `"a"`).Activation.Result) }
		if read(one) != `"value 1"` || read(two) != `"value 1"` {
			t.Fatalf("secret a = %s and %s on the two replicas, want \"value 1\" on both", read(one), read(two))
		}
		for i := range 3 {
			one.secret(kept, "a", fmt.Sprint("value ", i+2))
			want, began := quote(fmt.Sprint("value ", i+2)), time.Now()
			var old time.Duration // when the last call began that read the old value
			one.eventually("the change", func() bool {
				asked := time.Since(began)
				if read(one) == want && read(two) == want {
					return true
				}
				old = asked
				return false
			})
			if old > time.Second {
				t.Errorf("the old value was read %s after the change, want at most 1s", old)
			}
		}
		// The notice is lost: the record changes by itself.
		key := s.SecretKeys(one.tenant, namespace).Record("a")
		raw, err := s.Client().Get(t.Context(), key).Result()
		if err != nil {
			t.Fatalf("Get: %v", err)
		}
		if err := s.Client().Del(t.Context(), key).Err(); err != nil {
			t.Fatalf("Del: %v", err)
		}
		began := time.Now()
		two.eventually("the lost deletion", func() bool { return strings.Contains(read(two), "CS_RUNTIME_SECRET_NOT_FOUND") })
		if took := time.Since(began); took > 10*time.Second { // a replica's default is 30 s
			t.Errorf("got the old value for %s, want at most 10 s", took)
		}
		if read(one) != `"value 4"` {
			t.Errorf("got %s from the first replica, want \"value 4\", which it may cache for 30 s", read(one))
		}
		if err := s.Client().Set(t.Context(), key, raw, 0).Err(); err != nil {
			t.Fatalf("Set: %v", err)
		}
		if err := kept.Delete(t.Context(), secrets.Place{Tenant: one.tenant, Namespace: namespace}, "a", nil); err != nil {
			t.Fatalf("kept.Delete: %v", err)
		}
		one.eventually("the deletion", func() bool { return strings.Contains(read(one), "CS_RUNTIME_SECRET_NOT_FOUND") })
	})
}

// What a run read before a change is redacted as what it reads after.
func TestSecretsThatChangeWhileARunHasThem(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		kept := safe(t, s)
		b := newBench(t, s, withSafe(kept))
		b.secret(kept, "a", "first hunter2")
		config := naming("a")
		config.TimeoutMS = 20_000
		config.Capabilities.KV = &api.KVCapability{Prefixes: []string{""}, Ops: []string{"get", "set"}}
		b.publish("f", `export default async () => {
  const first = await cs.secrets.get("a");
  await cs.kv.set("waits", true);
  let now = first;
  while (now === first) { await new Promise(r => setTimeout(r, 10)); now = await cs.secrets.get("a"); }
  console.log("from " + first + " to " + now);
  throw new Error(first + now);
};`, config)
		done := make(chan *api.Outcome)
		go func() {
			out, err := b.engine.Invoke(context.Background(), b.invocation("f", "null"))
			if err != nil {
				t.Errorf("Invoke: %v", err)
			}
			done <- out
		}()
		b.eventually("the first read", func() bool { return b.kv("waits") == "true" })
		b.secret(kept, "a", "second hunter2")
		a := (<-done).Activation
		if a.Error == nil || a.Error.Message != "******" || !strings.Contains(b.lines(a.ActivationID), "from *** to ***") {
			t.Errorf("got error %+v and log %s, want both values of the secret replaced, also in \"from *** to ***\"", a.Error, b.lines(a.ActivationID))
		}
	})
}

// The modules of an instance may keep a secret. Logs never show it, also not after it has
// changed, and the instance ends after the activation that finds the change.
func TestSecretsThatAnInstanceKeeps(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		kept := safe(t, s)
		b := newBench(t, s, withSafe(kept), func(c *invoker.Config) { c.SecretsTTL = 50 * time.Millisecond })
		b.secret(kept, "a", "first hunter2")
		config := naming("a")
		config.Isolation = api.IsolationInstance
		b.publish("f", `let n = 0, value;
export default async (read) => {
  value ??= await cs.secrets.get("a");
  console.log("kept " + value);
  return [++n, read ? await cs.secrets.get("a") : null];
};`, config)
		want := func(out *api.Outcome, n int) {
			t.Helper()
			a := out.Activation
			if got := string(a.Result); !strings.HasPrefix(got, fmt.Sprintf("[%d,", n)) {
				t.Errorf("got result %s, want activation %d of its instance", got, n)
			}
			if got := b.lines(a.ActivationID); !strings.Contains(got, "kept ***") {
				t.Errorf("got log %q, want the value redacted", got)
			}
		}
		want(b.invoke("f", "false"), 1)
		want(b.invoke("f", "false"), 2)
		b.secret(kept, "a", "second hunter2")
		n := 2
		b.eventually("an instance that begins with the new value", func() bool {
			out := b.invoke("f", "true")
			n++
			if strings.HasPrefix(string(out.Activation.Result), "[1,") {
				n = 1
			}
			want(out, n)
			return n == 1
		})
	})
}

// reads are the events of a tenant's audit about secrets, oldest first.
func (b *bench) reads() []api.AuditEvent {
	b.t.Helper()
	items, _, err := access.NewAudit(b.store).List(b.t.Context(), access.AuditFilter{Tenant: b.tenant, Action: "secret.read", Limit: 500})
	if err != nil {
		b.t.Fatalf("List: %v", err)
	}
	slices.Reverse(items)
	return items
}

// Each reading stands in the audit: openings, and what functions ask for, many in one event.
func TestReadingSecretsIsAudited(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		kept := safe(t, s)
		b := newBench(t, s, withSafe(kept, func(c *invoker.Config) { c.SecretsWindow = time.Second }))
		b.secret(kept, "a", "alpha")
		b.secret(kept, "b", "beta")
		b.publish("f", getSecret, naming("a", "b", "gone"))
		began := time.Now()
		first := b.invoke("f", `"a"`).Activation
		var last api.Activation
		for range 20 {
			last = b.invoke("f", `"a"`).Activation
		}
		b.invoke("f", `"gone"`)
		b.invoke("f", `"other"`) // refused, so not read
		quick := time.Since(began) < time.Second
		b.eventually("the events", func() bool { return len(b.reads()) >= 4 })
		got := map[string]int64{}
		for _, e := range b.reads() {
			if e.Sub != "fn:default/f@1" || e.AtMS == 0 || e.RequestID != "req_test" || strings.Contains(fmt.Sprint(e), "alpha") {
				t.Errorf("got audit event %+v, want one of fn:default/f@1 with its time and request req_test, without the value", e)
			}
			got[fmt.Sprint(e.Method, " ", e.Made, " ", e.Status, " ", e.Code)] += e.Count
			if e.Method == "GET" && e.Made == "a@1" && quick && (e.ActivationID != first.ActivationID || e.LastActivationID != last.ActivationID ||
				e.Path != "/v1/tenants/"+b.tenant+"/namespaces/default/secrets/a") {
				t.Errorf("got audit event %+v, want the path of secret a and activations %s to %s", e, first.ActivationID, last.ActivationID)
			}
		}
		want := map[string]int64{"OPEN a@1 200 ": 1, "OPEN b@1 200 ": 1, "GET a@1 200 ": 21, "GET gone 404 CS_RUNTIME_SECRET_NOT_FOUND": 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf(`cmp.Diff = %v, want ""`, diff)
		}
	})
}

// A busy function leaves one event, and none is lost when the engine ends.
func TestReadingsAreWrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
	kept := safe(t, s)
	b := newBench(t, s, withSafe(kept))
	b.secret(kept, "a", "alpha")
	b.publish("f", `export default async () => { for (let i = 0; i < 50; i++) await cs.secrets.get("a") }`, naming("a"))
	b.invoke("f", "null")
	if n := len(b.reads()); n != 0 {
		t.Errorf("got %d events immediately, want none", n)
	}
	if err := b.engine.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	found := b.reads()
	if len(found) != 2 || found[0].Count+found[1].Count != 51 {
		t.Errorf("got audit events %+v, want 2 with 51 reads together", found)
	}
}

// A function that names no secrets costs no command of the store that reads them, nor
// does a warm one that names some.
func TestSecretsCostNothingWhereNoneAreNamed(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	store := storagetest.Open(t, storage.Config{URL: server.URL})
	kept := safe(t, store)
	reg := prometheus.NewRegistry()
	b := newBench(t, store, withSafe(kept, func(c *invoker.Config) { c.Metrics = reg }))
	b.secret(kept, "a", "alpha")
	b.publish("none", `export default () => 1`, defaults())
	b.publish("some", `export default () => cs.secrets.get("a")`, naming("a"))
	// cost returns the number of reads by five calls of a warm version.
	cost := func(name string) (resolves float64, commands int) {
		t.Helper()
		b.invoke(name, "null")
		resolves, commands = metricstest.Value(t, reg, "sous_secret_resolves_total"), mgets(t, store)
		for range 5 {
			b.invoke(name, "null")
		}
		return metricstest.Value(t, reg, "sous_secret_resolves_total") - resolves, mgets(t, store) - commands
	}
	// The version may be read again meanwhile.
	b.eventually("calls without a command", func() bool { _, commands := cost("none"); return commands == 0 })
	if n := metricstest.Value(t, reg, "sous_secret_resolves_total"); n != 0 {
		t.Errorf("got %v reads for a function that names no secrets, want none", n)
	}
	// The notice of the secret's making may come late, and have it read once more.
	b.eventually("calls without a read", func() bool {
		resolves, commands := cost("some")
		return resolves == 0 && commands == 0
	})
	if n := metricstest.Value(t, reg, "sous_secret_resolves_total", "outcome=ok"); n < 1 || n > 2 {
		t.Errorf("got %v reads for a function that names secrets, want 1 or 2", n)
	}
}

// mgets is how many MGET the server has served: the command that reads secrets.
func mgets(t *testing.T, store *storage.Store) int {
	t.Helper()
	return int(storagetest.Calls(t, store.Client())["mget"])
}
