package controlplane_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
)

// withSecrets lets the server seal secrets, with a key file of its own.
func withSecrets(t *testing.T, store *storage.Store) func(*controlplane.Config) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if _, err := secrets.Keygen(path, time.Now()); err != nil {
		t.Fatalf("Keygen: %v", err)
	}
	keys, err := secrets.OpenKeyFile(path, zap.NewNop())
	if err != nil {
		t.Fatalf("OpenKeyFile: %v", err)
	}
	return func(c *controlplane.Config) { c.Secrets = secrets.New(store, keys) }
}

func (h *harness) secretPath(name string) string {
	return "/v1/tenants/" + h.tenant + "/namespaces/payments/secrets/" + name
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	h := startOn(t, store, withSecrets(t, store))
	path := h.secretPath("stripe")
	a := h.call(t, "PUT", path, `{"value":"sk_live_1"}`, "If-None-Match", "*")
	made := ok[api.Secret](t, a, http.StatusCreated)
	if made.Name != "stripe" || made.Version != 1 || made.UpdatedBy != "local" || made.CreatedAtMS == 0 || a.header.Get("ETag") != `"1"` {
		t.Errorf("got secret %+v with headers %v, want version 1 of stripe by local with a creation time, and ETag \"1\"", made, a.header)
	}
	h.call(t, "PUT", path, `{"value":"x"}`, "If-None-Match", "*").refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PUT", path, `{"value":"x"}`, "If-Match", `"2"`).refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PUT", h.secretPath("none"), `{"value":"x"}`, "If-Match", `*`).refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PUT", path, `{"value":"x"}`, "If-Match", `*`, "If-None-Match", "*").refused(t, 422, api.CodeInvalid)
	h.call(t, "PUT", path, `{"value":"x"}`, "If-None-Match", `"1"`).refused(t, 422, api.CodeInvalid)
	a = h.call(t, "PUT", path, `{"value":"sk_live_2"}`, "If-Match", `"7", "1"`)
	if changed := ok[api.Secret](t, a, http.StatusOK); changed.Version != 2 || changed.CreatedAtMS != made.CreatedAtMS || a.header.Get("ETag") != `"2"` {
		t.Errorf("got secret %+v, want version 2 with the creation time %d, and ETag \"2\"", changed, made.CreatedAtMS)
	}
	a = h.call(t, "GET", path, "")
	if got := ok[api.Secret](t, a, http.StatusOK); got.Version != 2 || a.header.Get("ETag") != `"2"` || strings.Contains(string(a.body), "sk_live") {
		t.Errorf("got %s, want version 2, ETag \"2\" and a body without \"sk_live\"", a.body)
	}
	for _, name := range []string{"A", "z.y-x", "_"} {
		ok[api.Secret](t, h.call(t, "PUT", h.secretPath(name), `{"value":"v"}`), http.StatusCreated)
	}
	var names []string
	for cursor := ""; ; {
		p := ok[api.Page[api.Secret]](t, h.call(t, "GET", strings.TrimSuffix(h.secretPath(""), "/")+"?limit=3"+cursor, ""), http.StatusOK)
		for _, item := range p.Items {
			names = append(names, item.Name)
		}
		if p.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *p.NextCursor
	}
	if diff := cmp.Diff([]string{"A", "_", "stripe", "z.y-x"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	report := ok[api.RewrapReport](t, h.call(t, "POST", "/v1/tenants/"+h.tenant+"/secrets:rewrap", ""), http.StatusOK)
	if report.Examined != 4 || report.Rewrapped != 0 || report.NextCursor != nil {
		t.Errorf("POST: got %+v, want examined 4, rewrapped 0 and no next cursor", report)
	}
	h.call(t, "POST", "/v1/tenants/"+h.tenant+"/secrets:rewrap?cursor=xyz", "").refused(t, 400, api.CodeValidationCursor)
	h.call(t, "DELETE", path, "", "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	ok[any](t, h.call(t, "DELETE", path, "", "If-Match", `"2"`), http.StatusNoContent)
	h.call(t, "DELETE", path, "").refused(t, 404, api.CodeSecretNotFound)
	h.call(t, "GET", path, "").refused(t, 404, api.CodeSecretNotFound)
	var actions []string
	for _, e := range h.audit(t, h.tenant) {
		if e.Status < 300 {
			actions = append(actions, e.Action+" "+e.Made)
		}
	}
	want := []string{"cs:secret:write stripe@1", "cs:secret:write stripe@2", "cs:secret:write A@1", "cs:secret:write z.y-x@1", "cs:secret:write _@1", "cs:secret:rewrap ", "cs:secret:delete "}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A server without a key file says what to do, and serves all else.
func TestSecretsWithoutAKey(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.call(t, "PUT", h.secretPath("stripe"), `{"value":"x"}`)
	a.refused(t, 409, api.CodeSecretKeyMissing)
	if !strings.Contains(string(a.body), "--secrets-key-file") {
		t.Errorf("got %s, want a body that contains \"--secrets-key-file\"", a.body)
	}
	h.call(t, "POST", "/v1/tenants/"+h.tenant+"/secrets:rewrap", "").refused(t, 409, api.CodeSecretKeyMissing)
	ok[api.Page[api.Secret]](t, h.call(t, "GET", strings.TrimSuffix(h.secretPath(""), "/"), ""), http.StatusOK)
}

// Whatever is wrong with a request, its value shows nowhere: not in the answer, not in
// the log at its most talkative, not in the audit.
func TestValuesShowNowhere(t *testing.T) {
	t.Parallel()
	const value = "hunter2hunter2"
	log := &journal{}
	store := embedded(t)
	h := startOn(t, store, withSecrets(t, store), func(c *controlplane.Config) {
		c.Logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log, zap.DebugLevel))
	})
	tests := []struct {
		name, body string
		status     int
		code       api.Code
		headers    []string
	}{
		{"no JSON", value, 400, api.CodeValidationJSON, nil},
		{"cut", `{"value":"` + value, 400, api.CodeValidationJSON, nil},
		{"more behind it", `{"value":"` + value + `"} ` + value, 400, api.CodeValidationJSON, nil},
		{"no UTF-8", `{"value":"` + value + "\xff" + `"}`, 400, api.CodeValidationJSON, nil},
		{"nothing", ``, 400, api.CodeValidationJSON, nil},
		{"a text alone", `"` + value + `"`, 422, api.CodeInvalid, nil},
		{"null", `null`, 422, api.CodeInvalid, nil},
		{"a list", `["` + value + `"]`, 422, api.CodeInvalid, nil},
		{"no value", `{}`, 422, api.CodeInvalid, nil},
		{"another field's name", `{"` + value + `":"x"}`, 422, api.CodeInvalid, nil},
		{"one field more", `{"value":"x","` + value + `":1}`, 422, api.CodeInvalid, nil},
		{"in upper case", `{"Value":"` + value + `"}`, 422, api.CodeInvalid, nil},
		{"within an object", `{"value":{"a":"` + value + `"}}`, 422, api.CodeInvalid, nil},
		{"a number", `{"value":123456789123456789}`, 422, api.CodeInvalid, nil},
		{"null value", `{"value":null}`, 422, api.CodeInvalid, nil},
		{"empty", `{"value":""}`, 422, api.CodeInvalid, nil},
		{"too long", `{"value":"` + strings.Repeat(value, api.MaxSecretBytes/len(value)+1) + `"}`, 422, api.CodeInvalid, nil},
		{"far too long", `{"value":"` + strings.Repeat(value, api.MaxRequestBytes/len(value)) + `"}`, 413, api.CodeBodyLimit, nil},
		{"another type", `{"value":"` + value + `"}`, 415, api.CodeMediaType, []string{"Content-Type", "text/plain"}},
		{"a precondition", `{"value":"` + value + `"}`, 412, api.CodePreconditionFailed, []string{"If-Match", `"9"`}},
	}
	for _, tc := range tests {
		a := h.call(t, "PUT", h.secretPath("stripe"), tc.body, tc.headers...)
		a.refused(t, tc.status, tc.code)
		if text := fmt.Sprint(string(a.body), a.header); strings.Contains(text, value) || strings.Contains(text, "123456789123") {
			t.Errorf("%s: got the value in the answer %s, want no value", tc.name, text)
		}
	}
	ok[api.Secret](t, h.call(t, "PUT", h.secretPath("stripe"), `{"value":"`+value+`"}`), http.StatusCreated)
	h.call(t, "PUT", h.secretPath("9"), `{"value":"`+value+`"}`).refused(t, 400, api.CodeValidationName)
	events := h.audit(t, h.tenant)
	// The further refusals of a minute are counted.
	const single = 8
	if len(events) != single+1 {
		t.Errorf("got %d audit events, want those of %d refusals and of the secret", len(events), single)
	}
	if slices.ContainsFunc(events, func(e api.AuditEvent) bool { return strings.Contains(fmt.Sprint(e), value) }) {
		t.Errorf("audit: got the value in %+v, want no value", events)
	}
	h.Close()
	log.mu.Lock()
	defer log.mu.Unlock()
	if text := log.text.String(); strings.Contains(text, value) || !strings.Contains(text, "stripe") {
		t.Errorf("got log %s, want the name stripe and not the value", text)
	}
}
