package hostcall

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/invoker/models"
)

// retrying is a Models whose chat sends a request until one is refused.
type retrying struct{ url string }

func (m retrying) Chat(ctx context.Context, who *models.Caller, _ []byte, _ string) (*ai.Answer, error) {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, http.NoBody)
		if err != nil {
			return nil, err
		}
		resp, err := who.Send(req)
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close() // it was not read
	}
}

func (retrying) Embed(context.Context, *models.Caller, []byte, string) (*ai.Embeddings, error) {
	return &ai.Embeddings{}, nil
}

func (retrying) Stream(context.Context, *models.Caller, []byte, string) (io.ReadCloser, error) {
	return http.NoBody, nil
}

// TestEachRequestOfAModelIsAdmitted: the egress of a tenant is checked for each request of a call, not
// only for the first.
func TestEachRequestOfAModelIsAdmitted(t *testing.T) {
	t.Parallel()
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent++ }))
	t.Cleanup(server.Close)
	admitted := 0
	h := New(Services{
		Models: retrying{server.URL}, EgressAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		AdmitEgress: func(context.Context, string) error {
			if admitted == 3 {
				return api.Errorf(api.CodeTenantRate, "no more egress")
			}
			admitted++
			return nil
		},
	})
	s := &Scope{Tenant: "t_a", Models: &models.Caller{}, Capabilities: api.Capabilities{AI: &api.AICapability{Providers: []string{"main"}}}}
	_, _, err := h.Call(t.Context(), s, "ai.chat", []byte(`{"provider":"main"}`), []byte(`{}`))
	if api.ErrorCode(err) != api.CodeTenantRate || sent != 3 {
		t.Errorf("got error %v after %d requests, want code %s after 3", err, sent, api.CodeTenantRate)
	}
}
