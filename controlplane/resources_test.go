package controlplane_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func TestDraftsAsTarAndAsJSONAreTheSame(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := startOn(t, s)
		h.create(t)
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for _, name := range []string{"./lib/", "./manifest.json", "./function.js"} {
			header := tar.Header{Name: name, Mode: 0o755, Uid: 7, Typeflag: tar.TypeReg, Size: 2}
			if strings.HasSuffix(name, "/") {
				header.Typeflag, header.Size = tar.TypeDir, 0
			}
			if err := w.WriteHeader(&header); err != nil {
				t.Fatalf("WriteHeader: %v", err)
			}
			if _, err := w.Write([]byte("{}")[:header.Size]); err != nil {
				t.Fatalf("Write: %v", err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		asTar := ok[api.DraftReceipt](t, h.call(t, "PUT", h.fn("/draft"), buf.String(), "Content-Type", "application/x-tar"), 200)
		asJSON := ok[api.DraftReceipt](t, h.call(t, "PUT", h.fn("/draft"), `{"files":{"function.js":"e30=","manifest.json":"e30="}}`), 200)
		if diff := cmp.Diff(asTar, asJSON, cmpopts.IgnoreFields(api.DraftReceipt{}, "DraftID", "ExpiresAtMS")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if asTar.DraftID == asJSON.DraftID {
			t.Error("one draft for two uploads")
		}
		packed, err := bundle.Pack(map[string][]byte{"function.js": []byte("{}"), "manifest.json": []byte("{}")})
		if err != nil {
			t.Fatalf("Pack: %v", err)
		}
		if asTar.SHA256 != bundle.Digest(packed) || asTar.SizeBytes != int64(len(packed)) {
			t.Errorf("got receipt %+v, want digest %s and size %d of the packed files", asTar, bundle.Digest(packed), len(packed))
		}
		ok[any](t, h.call(t, "POST", h.fn("/versions"), `{"draft_id":"`+asTar.DraftID+`"}`), http.StatusCreated)

		// The same digest and config again is the same version.
		again := ok[api.Version](t, h.call(t, "POST", h.fn("/versions"), `{"draft_id":"`+asJSON.DraftID+`","alias":"prod"}`), http.StatusOK)
		if again.Version != 1 {
			t.Errorf("version %d, want version 1", again.Version)
		}
		if a := ok[api.Alias](t, h.call(t, "GET", h.fn("/aliases/prod"), ""), 200); a.Version != 1 {
			t.Errorf("alias %+v, want version 1", a)
		}
		a := h.call(t, "GET", h.fn("/versions/1/bundle"), "")
		if a.status != 200 || !bytes.Equal(a.body, packed) || a.header.Get("Content-Type") != "application/x-tar" {
			t.Errorf("GET bundle: got %d with %d bytes, want 200 with the %d packed bytes as application/x-tar", a.status, len(a.body), len(packed))
		}
		tag := a.header.Get("ETag")
		if tag != `"`+asTar.SHA256+`"` {
			t.Errorf("ETag %s, want the SHA-256 %s", tag, asTar.SHA256)
		}
		for condition, status := range map[string]int{tag: 304, "W/" + tag: 304, `"a", ` + tag: 304, "*": 304, `"other"`: 200} {
			if a := h.call(t, "GET", h.fn("/versions/1/bundle"), "", "If-None-Match", condition); a.status != status {
				t.Errorf("If-None-Match %s: %d, want status %v", condition, a.status, status)
			}
		}
	})
}

func TestPublishMergesTheConfig(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	h.deploy(t, "x", `{"timeout_ms":7,"env":{"A":"b"}}`)
	v := ok[api.Version](t, h.call(t, "GET", h.fn("/versions/1"), ""), 200)
	want := api.VersionConfig{
		Entry: "function.js", Handler: "default", TimeoutMS: 7, CPUMS: api.DefaultCPUMS, MemoryMB: api.DefaultMemoryMB, MaxConcurrency: 10, Isolation: api.IsolationInstance, Env: map[string]string{"A": "b"},
	}
	if diff := cmp.Diff(want, v.Config); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{h.tenant + "#function.js#default"}, h.engine.checked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAliasesAreGuarded(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := startOn(t, s)
		h.create(t)
		for i := range 3 {
			h.deploy(t, fmt.Sprint(i), "")
		}
		for _, step := range []struct {
			method, body string
			condition    []string
			status       int
			code         api.Code
			tag          string
		}{
			{"PUT", `{"version":1}`, []string{"If-None-Match", "*"}, 412, api.CodePreconditionFailed, ""},
			{"PUT", `{"version":1}`, []string{"If-Match", `"2"`}, 412, api.CodePreconditionFailed, ""},
			{"PUT", `{"version":1}`, []string{"If-Match", `W/"3"`}, 412, api.CodePreconditionFailed, ""},
			{"PUT", `{"version":1}`, []string{"If-Match", `"3"`}, 200, "", `"1"`},
			{"PUT", `{"version":2}`, []string{"If-Match", `"7", "1"`}, 200, "", `"2"`},
			{"PUT", `{"version":3}`, []string{"If-Match", `*`}, 200, "", `"3"`},
			{"PUT", `{"version":1}`, nil, 200, "", `"1"`},
			{"PUT", `{"version":1}`, []string{"If-None-Match", `"1"`}, 422, api.CodeInvalid, ""},
			{"PUT", `{"version":1}`, []string{"If-None-Match", "*", "If-Match", `"1"`}, 422, api.CodeInvalid, ""},
			{"GET", ``, nil, 200, "", `"1"`},
			{"DELETE", ``, []string{"If-Match", `"2"`}, 412, api.CodePreconditionFailed, ""},
			{"DELETE", ``, []string{"If-Match", `"1"`}, 204, "", ""},
			{"GET", ``, nil, 404, api.CodeAliasNotFound, ""},
			{"PUT", `{"version":1}`, []string{"If-Match", `*`}, 412, api.CodePreconditionFailed, ""},
			{"PUT", `{"version":2}`, []string{"If-None-Match", "*"}, 200, "", `"2"`},
		} {
			a := h.call(t, step.method, h.fn("/aliases/prod"), step.body, step.condition...)
			if step.code != "" {
				a.refused(t, step.status, step.code)
				continue
			}
			if a.status != step.status || a.header.Get("ETag") != step.tag {
				t.Fatalf("%s %s %v: %d, ETag %s: %s, want status %v and ETag %v", step.method, step.body, step.condition, a.status, a.header.Get("ETag"), a.body, step.status, step.tag)
			}
		}
	})
}

func TestConcurrentPublishesAreConsecutive(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := startOn(t, s)
		h.create(t)
		const clients = 8
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			seen = map[int64]bool{}
		)
		drafts := make([]api.DraftReceipt, clients)
		for i := range drafts {
			drafts[i] = h.upload(t, fmt.Sprint("source ", i))
		}
		for i := range drafts {
			wg.Go(func() {
				a := h.call(t, "POST", h.fn("/versions"), `{"draft_id":"`+drafts[i].DraftID+`"}`)
				var v struct {
					Version int64 `json:"version"`
				}
				if err := json.Unmarshal(a.body, &v); err != nil || a.status != 201 {
					t.Errorf("Unmarshal: got %d %s, want no error and status 201", a.status, a.body)
				}
				mu.Lock()
				seen[v.Version] = true
				mu.Unlock()
			})
		}
		wg.Wait()
		for n := int64(1); n <= clients; n++ {
			if !seen[n] {
				t.Errorf("got versions %v, want %d among them", seen, n)
			}
		}
	})
}

// pages walks a list by its cursors and returns a field of all items.
func pages(t *testing.T, h *harness, path, field string, limit int) []string {
	t.Helper()
	var got []string
	query := "limit=" + strconv.Itoa(limit)
	if strings.Contains(path, "?") {
		path += "&"
	} else {
		path += "?"
	}
	for cursor := ""; ; {
		p := ok[api.Page[map[string]any]](t, h.call(t, "GET", path+query+cursor, ""), 200)
		if len(p.Items) > limit {
			t.Fatalf("got %d items on a page, want at most %d", len(p.Items), limit)
		}
		for _, item := range p.Items {
			got = append(got, fmt.Sprint(item[field]))
		}
		if p.NextCursor == nil {
			return got
		}
		cursor = "&cursor=" + *p.NextCursor
	}
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := startOn(t, s)
		functions := strings.TrimSuffix(h.fn(""), "/hello")
		if p := ok[api.Page[any]](t, h.call(t, "GET", functions, ""), 200); p.Items == nil || len(p.Items) != 0 || p.NextCursor != nil {
			t.Errorf("got page %+v, want items [] and no next cursor", p)
		}
		var names []string
		for i := range 7 {
			names = append(names, fmt.Sprintf("fn-%d", i))
			ok[any](t, h.call(t, "POST", functions, `{"name":"`+names[i]+`"}`), 201)
		}
		h.create(t)
		names = append(names, "hello")
		var versions, aliases []string
		for i := range 5 {
			h.deploy(t, fmt.Sprint(i), "")
			alias := fmt.Sprintf("a%d", i)
			ok[any](t, h.call(t, "PUT", h.fn("/aliases/"+alias), `{"version":1}`), 200)
			versions = append([]string{fmt.Sprint(i + 1)}, versions...)
			aliases = append(aliases, alias)
		}
		aliases = append(aliases, "prod")
		ok[any](t, h.call(t, "POST", strings.Replace(functions, "payments", "billing", 1), `{"name":"other"}`), 201)
		for _, limit := range []int{1, 2, 3, 500} {
			for _, list := range []struct {
				path, field string
				want        []string
			}{
				{functions, "name", names},
				{h.fn("/versions"), "version", versions},
				{h.fn("/aliases"), "alias", aliases},
				{"/v1/tenants/" + h.tenant + "/namespaces", "namespace", []string{"billing", "payments"}},
			} {
				if diff := cmp.Diff(list.want, pages(t, h, list.path, list.field, limit)); diff != "" {
					t.Errorf("%s by %d: (-want +got):\n%s", list.path, limit, diff)
				}
			}
		}
		// A cursor is good for its own list only.
		p := ok[api.Page[any]](t, h.call(t, "GET", functions+"?limit=2", ""), 200)
		for _, other := range []string{
			strings.Replace(functions, "payments", "billing", 1), h.fn("/versions"), h.fn("/aliases"), "/v1/tenants/" + h.tenant + "/namespaces",
		} {
			h.call(t, "GET", other+"?cursor="+*p.NextCursor, "").refused(t, 400, api.CodeValidationCursor)
		}
	})
}

func TestDeletedFunctionsAreGoneAndRevive(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := startOn(t, s)
		h.create(t)
		h.deploy(t, "x", "")
		before := h.engine.invalidated
		if a := h.call(t, "DELETE", h.fn(""), ""); a.status != 204 || len(a.body) != 0 {
			t.Fatalf("DELETE: got %d %s, want status 204 and an empty body", a.status, a.body)
		}
		if h.engine.invalidated == before {
			t.Error("the engine was not notified")
		}
		h.call(t, "GET", h.fn(""), "").refused(t, 404, api.CodeFunctionNotFound)
		h.call(t, "PUT", h.fn("/draft"), draftJSON("x")).refused(t, 404, api.CodeFunctionNotFound)
		h.create(t)
		h.deploy(t, "y", "")
		if d := ok[api.FunctionDetail](t, h.call(t, "GET", h.fn(""), ""), 200); *d.LatestVersion != 2 {
			t.Errorf("latest version %d, want latest version 2", *d.LatestVersion)
		}
	})
}

func TestInvokeAnswersWithTheActivation(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.call(t, "POST", h.fn(":invoke"), ` {"event": {"a": [1, 2.0]} , "ref":{"version":3}, "mode":"sync"} `)
	r := ok[api.InvokeResponse](t, a, 200)
	want := api.InvokeResponse{ActivationID: activationID, Status: "success", Result: json.RawMessage(`{"ok":true}`), DurationMS: 12}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	inv := h.engine.last(t)
	if string(inv.Event) != `{"a": [1, 2.0]}` || inv.Ref != (api.Ref{Version: 3}) || inv.Trigger.Type != "api" || inv.MaxTimeout != 0 ||
		inv.RequestID != a.header.Get("X-Request-Id") {
		t.Errorf("got invocation %+v, want the event as it was sent, version 3, trigger api and the id of the request", inv)
	}
	h.call(t, "POST", h.fn(":invoke"), `{"ref":{"alias":"prod"}}`)
	if inv := h.engine.last(t); string(inv.Event) != "null" || inv.Ref.Alias != "prod" {
		t.Errorf("got invocation %+v, want the event null and the alias prod", inv)
	}
}

func TestLimitsAreListed(t *testing.T) {
	t.Parallel()
	h := start(t)
	limits := ok[struct {
		Version struct {
			TimeoutMS struct{ Max, Default int } `json:"timeout_ms"`
		}
		Request struct {
			EventBytes int `json:"event_bytes"`
		}
	}](t, h.call(t, "GET", "/v1/limits", ""), 200)
	if limits.Version.TimeoutMS.Max != 900000 || limits.Version.TimeoutMS.Default != 3000 || limits.Request.EventBytes != 6<<20 {
		t.Errorf("got limits %+v, want timeout_ms max 900000 and default 3000, and event_bytes %d", limits, 6<<20)
	}
}

// TestLimitsHaveTheSettings: the retention is the one of the settings, and for a key of one
// tenant that of the tenant.
func TestLimitsHaveTheSettings(t *testing.T) {
	t.Parallel()
	retention := func(a answer) (got [5]int64) {
		l := ok[controlplane.Limits](t, a, 200)
		return [5]int64{l.Activation.TTLMS, l.Version.RecordMS.Default, l.Job.RetentionMS, l.Queue.RetentionMS.Default, l.Queue.RetentionMS.Max}
	}
	want := [5]int64{api.ActivationTTLMS, api.ActivationTTLMS, api.JobRetentionMS, api.JobRetentionMS, api.MaxRetentionMS}
	if got := retention(start(t).call(t, "GET", "/v1/limits", "")); got != want {
		t.Errorf("without settings: got %d, want the defaults %d", got, want)
	}
	keep := func(hours time.Duration) storage.Retention {
		return storage.Retention{Default: hours * time.Hour, Tenants: map[string]time.Duration{"t_acme01": 10 * hours * time.Hour}}
	}
	store := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir()), Activations: keep(2)})
	k := startKeyed(t, store, func(cfg *controlplane.Config) { cfg.JobRetention = keep(3) })
	const hour = int64(time.Hour / time.Millisecond)
	for tenant, want := range map[string][5]int64{
		api.AllTenants: {2 * hour, 2 * hour, 3 * hour, 3 * hour, api.MaxRetentionMS},
		"t_other1":     {2 * hour, 2 * hour, 3 * hour, 3 * hour, api.MaxRetentionMS},
		"t_acme01":     {20 * hour, 20 * hour, 30 * hour, 30 * hour, api.MaxRetentionMS},
	} {
		secret, _ := k.key(t, api.RoleAdmin, ofTenant(tenant))
		if got := retention(k.as(t, secret, "GET", "/v1/limits", "")); got != want {
			t.Errorf("with a key of tenant %s: got %d, want %d", tenant, got, want)
		}
	}
}
