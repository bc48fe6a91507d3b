package controlplane_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/storage"
	storeaccess "github.com/codesous/sous/storage/access"
)

// clock is a time that moves only by advance.
type clock struct{ offset, base atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.base.Store(time.Now().UnixNano())
	return c
}

func (c *clock) now() time.Time           { return time.Unix(0, c.base.Load()+c.offset.Load()) }
func (c *clock) advance(by time.Duration) { c.offset.Add(int64(by)) }
func onClock(c *clock) func(*controlplane.Config) {
	return func(cfg *controlplane.Config) { cfg.Clock = c.now }
}

// keyed is a harness that asks for keys. Its log is kept whole and must hold none
// of the keys that were made.
type keyed struct {
	*harness
	mu      sync.Mutex
	secrets []string
}

// journal is a log in memory.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (*journal) Sync() error { return nil }

func startKeyed(t *testing.T, store *storage.Store, change ...func(*controlplane.Config)) *keyed {
	t.Helper()
	log := &journal{}
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.DebugLevel)
	k := &keyed{}
	t.Cleanup(func() { // after the server has been closed
		if log.text.Len() == 0 {
			t.Error("nothing was logged")
		}
		k.holdsNone(t, "the log", log.text.String())
	})
	defaults := func(c *controlplane.Config) { c.Auth, c.Logger = access.Keys, zap.New(core) }
	k.harness = startOn(t, store, append([]func(*controlplane.Config){defaults}, change...)...)
	k.engine.authorize = authorizeOn(t, store)
	k.engine.invoke = func(_ context.Context, inv api.Invocation) (*api.Outcome, error) {
		// As the engine has it: Invoke judges by itself.
		if err := k.engine.authorize(&inv); err != nil {
			return nil, err
		}
		return success(`{"statusCode":200,"body":"hi"}`), nil
	}
	k.call(t, "GET", "/v1/tenants", "") // something is logged: the cleanup above requires it
	return k
}

// authorizeOn is the engine's own judgement. It runs nothing: it has no sandboxes.
func authorizeOn(t *testing.T, store *storage.Store) func(*api.Invocation) error {
	t.Helper()
	engine, err := invoker.New(t.Context(), store, nil, nil, invoker.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return func(inv *api.Invocation) error { return engine.Authorize(t.Context(), inv) }
}

// holdsNone fails if a key, or the secret part of one, stands in text.
func (k *keyed) holdsNone(t *testing.T, where, text string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, secret := range k.secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s: got a key in %s, want none", where, text)
			return
		}
	}
}

// key makes a key of the harness's tenant with one role, or as change has it.
func (k *keyed) key(t *testing.T, role string, change ...func(*api.Key)) (text string, record api.Key) {
	t.Helper()
	now := time.Now().UnixMilli()
	text, id, err := api.NewKeySecret(now, rand.Reader)
	if err != nil {
		t.Fatalf("NewKeySecret: %v", err)
	}
	record = api.Key{ID: id, Tenant: k.tenant, Name: "test", Roles: []string{role}, CreatedAtMS: now, CreatedBy: "test"}
	for _, c := range change {
		c(&record)
	}
	if err := storeaccess.NewAPIKeys(k.store).Create(t.Context(), record, api.KeyDigest(text)); err != nil {
		t.Fatalf("Create: %v", err)
	}
	k.secret(text)
	return text, record
}

// secret makes a text one that must not show anywhere.
func (k *keyed) secret(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.secrets = append(k.secrets, text[len("sous_")+26+1:])
}

// as sends a request with a key, "" for none.
func (k *keyed) as(t *testing.T, key, method, path, body string, headers ...string) answer {
	t.Helper()
	if key != "" {
		headers = append(headers, "Authorization", "Bearer "+key)
	}
	return k.call(t, method, path, body, headers...)
}

// lost returns the text of a key that was never created.
func (k *keyed) lost(t *testing.T) string {
	t.Helper()
	text, _, err := api.NewKeySecret(time.Now().UnixMilli(), rand.Reader)
	if err != nil {
		t.Fatalf("NewKeySecret: %v", err)
	}
	k.secret(text)
	return text
}

func ofTenant(tenant string) func(*api.Key) { return func(k *api.Key) { k.Tenant = tenant } }

func inNamespace(ns string) func(*api.Key) { return func(k *api.Key) { k.Namespace = ns } }

func withRoles(roles ...string) func(*api.Key) { return func(k *api.Key) { k.Roles = roles } }

func until(ms int64) func(*api.Key) { return func(k *api.Key) { k.ExpiresAtMS = ms } }

// publish makes a version of a function of the harness's tenant, under prod.
func (k *keyed) publish(t *testing.T, namespace, function, config string) {
	t.Helper()
	admin, _ := k.key(t, api.RoleAdmin)
	path := "/v1/tenants/" + k.tenant + "/namespaces/" + namespace + "/functions"
	ok[api.Function](t, k.as(t, admin, "POST", path, `{"name":"`+function+`"}`), http.StatusCreated)
	draft := ok[api.DraftReceipt](t, k.as(t, admin, "PUT", path+"/"+function+"/draft", draftJSON("x")), http.StatusOK)
	body := `{"draft_id":"` + draft.DraftID + `","alias":"prod","config":` + config + `}`
	ok[any](t, k.as(t, admin, "POST", path+"/"+function+"/versions", body), http.StatusCreated)
}
