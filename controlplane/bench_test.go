package controlplane_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	storeaccess "github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/storagetest"
)

// BenchmarkHandlers measures what this package adds to an invoke: the engine
// answers at once, and there is no connection.
func BenchmarkHandlers(b *testing.B) {
	store := storagetest.Open(b, storage.Config{Embedded: storagetest.Embedded(b, b.TempDir())})
	outcome := success(`{"statusCode":200,"headers":{"content-type":"application/json"},"body":"{\"ok\":true}"}`)
	broker, err := queue.New(b.Context(), store, queue.Config{})
	if err != nil {
		b.Fatalf("New: %v", err)
	}
	b.Cleanup(broker.Close)
	server, err := controlplane.New(b.Context(), store, immediate{outcome}, broker, controlplane.Config{Auth: access.Off})
	if err != nil {
		b.Fatalf("New: %v", err)
	}
	b.Cleanup(server.Close)
	keyed, err := controlplane.New(b.Context(), store, immediate{outcome}, broker, controlplane.Config{})
	if err != nil {
		b.Fatalf("New: %v", err)
	}
	b.Cleanup(keyed.Close)
	key, id, err := api.NewKeySecret(1_700_000_000_000, rand.Reader)
	if err != nil {
		b.Fatalf("NewKeySecret: %v", err)
	}
	record := api.Key{ID: id, Tenant: "t_abcdef", Name: "bench", Roles: []string{api.RoleInvoker}, CreatedAtMS: 1_700_000_000_000}
	if err := storeaccess.NewAPIKeys(store).Create(b.Context(), record, api.KeyDigest(key)); err != nil {
		b.Fatalf("Create: %v", err)
	}
	const (
		web    = "/v1/web/t_abcdef/payments/hello/prod/orders?x=1"
		invoke = "/v1/tenants/t_abcdef/namespaces/payments/functions/hello:invoke"
		call   = `{"ref":{"alias":"prod"},"event":{"a":1}}`
	)
	for name, tc := range map[string]struct {
		handler    http.Handler
		path, body string
	}{
		"web":          {server.Handler(), web, `{"a":1}`},
		"web/keyed":    {keyed.Handler(), web, `{"a":1}`},
		"invoke":       {server.Handler(), invoke, call},
		"invoke/keyed": {keyed.Handler(), invoke, call},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "http://localhost"+tc.path, strings.NewReader(tc.body))
				r.Header = http.Header{
					"User-Agent": {"bench"}, "Accept": {"*/*"}, "Content-Type": {"application/json"}, "Authorization": {"Bearer " + key},
				}
				w := httptest.NewRecorder()
				tc.handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatalf("got %d %s, want status 200", w.Code, w.Body)
				}
			}
		})
	}
}

// immediate is an engine that answers at once.
type immediate struct{ outcome *api.Outcome }

func (i immediate) Invoke(context.Context, api.Invocation) (*api.Outcome, error) {
	return i.outcome, nil
}

// Authorize keeps every version from those without a key.
func (immediate) Authorize(_ context.Context, inv *api.Invocation) error {
	if inv.Access == api.AccessPublic {
		return api.Errorf(api.CodeAuthnRequired, "this needs an API key")
	}
	return nil
}

func (immediate) AuthorizeTrigger(context.Context, *api.Invocation) error { return nil }

func (immediate) Cancel(context.Context, string, string) (*api.Activation, error) { return nil, nil }

func (immediate) Verify(context.Context, string, string, string, *api.VersionConfig, []byte) ([]string, error) {
	return nil, nil
}

func (immediate) Check(context.Context, string, string, string, []byte) error { return nil }

func (immediate) FunctionChanged(context.Context, string, string, string) {}

func (immediate) FlushCalls(context.Context, string, string) {}

func (immediate) Warm(string, string, string, *api.Version) {}

func (immediate) Enqueue(context.Context, api.Invocation) (*api.Queued, error) { return nil, nil }
