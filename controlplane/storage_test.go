package controlplane_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage/documents"
)

// record is the path of a document of the install crm in the namespace settings.
func (h *harness) record(key string) string {
	return h.at("T/installs/crm/storage/namespaces/settings/records/") + key
}

func TestHeadersGuardDocuments(t *testing.T) {
	t.Parallel()
	h := start(t)
	made := h.call(t, "PUT", h.record("a"), `{"value":1}`, "If-None-Match", "*")
	if d := ok[api.Document](t, made, 200); d.Revision != 1 || made.header.Get("ETag") != `"1"` {
		t.Errorf("got document %+v with ETag %s, want revision 1 and ETag \"1\"", d, made.header.Get("ETag"))
	}
	h.call(t, "PUT", h.record("a"), `{"value":2}`, "If-None-Match", "*").refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PUT", h.record("a"), `{"value":2}`, "If-Match", `"7"`).refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PUT", h.record("none"), `{"value":2}`, "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	ok[api.Document](t, h.call(t, "PUT", h.record("a"), `{"value":2}`, "If-Match", `"1"`), 200)
	h.call(t, "PUT", h.record("a"), `{"value":2,"ifRevision":9}`).refused(t, 409, api.CodeRevisionMismatch)
	read := h.call(t, "GET", h.record("a"), "", "If-Revision-Match", "2")
	if d := ok[api.Document](t, read, 200); string(d.Value) != "2" || read.header.Get("ETag") != `"2"` {
		t.Errorf("got %s, want value \"2\" and ETag \"2\"", read.body)
	}
	h.call(t, "DELETE", h.record("a"), "", "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "DELETE", h.record("none"), "", "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	ok[any](t, h.call(t, "DELETE", h.record("a"), "", "If-Match", `"2"`), 204)
	ok[any](t, h.call(t, "DELETE", h.record("a"), ""), 204)
}

// Keys in paths are read as they are judged.
func TestKeysInPaths(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, key := range []string{"a:b", "%20", "%F0%9F%98%80%25", "a%2Bb", strings.Repeat("%F0%9F%98%80", 128), "a{b}", "a:put"} {
		made := ok[api.Document](t, h.call(t, "PUT", h.record(key), `{"value":1}`), 200)
		if read := ok[api.Document](t, h.call(t, "GET", h.record(key), ""), 200); read.Key != made.Key || strings.Contains(made.Key, "%2") {
			t.Errorf("key %s: wrote %q and read %q, want equal keys without percent-encoding", key, made.Key, read.Key)
		}
	}
	for _, key := range []string{"a%2Fb", "%2F", "%00", "a%0Ab", "%FF", "%2E", "%2E%2E", strings.Repeat("%F0%9F%98%80", 129)} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			h.call(t, method, h.record(key), `{"value":1}`).refused(t, 400, api.CodeDocumentInvalid)
		}
	}
}

func TestKeysOfANamespaceEnterItsFunctionsInstalls(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	ours, _ := k.key(t, api.RoleDeveloper, inNamespace("payments"))
	writer, _ := k.key(t, api.RoleDeveloper)
	put := func(key, install string) answer {
		return k.as(t, key, "POST", k.at("T/installs/"+install+"/storage/put"), `{"namespace":"settings","key":"a","value":1}`)
	}
	ok[api.Document](t, put(ours, "fn.payments.hello"), 200)
	ok[api.Document](t, put(writer, "fn.others.hello"), 200)
	for _, install := range []string{"fn.others.hello", "crm", "fn.payments", "fn.payments2.hello", "payments"} {
		put(ours, install).refused(t, 403, api.CodeStorageDenied)
		k.as(t, ours, "DELETE", k.at("T/installs/"+install), "").refused(t, 403, api.CodeStorageDenied)
	}
	k.as(t, ours, "GET", k.at("T/installs"), "").refused(t, 403, api.CodeStorageDenied)
	k.as(t, ours, "PUT", k.at("T/installs/crm"), `{}`).refused(t, 403, api.CodeStorageDenied)
}

// Schemas, installs and namespaces that go are audited; documents are data.
func TestConfigurationOfTheStorageIsAudited(t *testing.T) {
	t.Parallel()
	h := start(t)
	storage := h.at("T/installs/crm/storage")
	ok[api.Install](t, h.call(t, "PUT", h.at("T/installs/crm"), `{"functions":["payments/*"]}`), 200)
	ok[any](t, h.call(t, "PUT", storage+"/namespaces/settings/schema", `{"type":"object"}`), 204)
	ok[api.Document](t, h.call(t, "PUT", h.record("a"), `{"value":{}}`), 200)
	ok[api.DocumentResults](t, h.call(t, "POST", storage+"/transact", `{"namespace":"settings","operations":[{"op":"delete","key":"a"}]}`), 200)
	ok[any](t, h.call(t, "DELETE", h.record("a"), ""), 204)
	p := h.call(t, "PUT", h.record("a"), `{"value":[]}`).refused(t, 400, api.CodeDocumentInvalid)
	if diff := cmp.Diff([]api.FieldError{{Path: "value", Message: "got array, want object"}}, p.Errors); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if schema := h.call(t, "GET", storage+"/namespaces/settings/schema", ""); strings.TrimSpace(string(schema.body)) != `{"type":"object"}` {
		t.Errorf("GET: got %s, want body {\"type\":\"object\"}", schema.body)
	}
	if found := ok[api.DocumentNamespace](t, h.call(t, "GET", storage+"/namespaces/settings", ""), 200); !found.HasSchema || found.Use.Records != 0 || found.Use.MaxRecords != api.DefaultNamespaceRecords {
		t.Errorf("got namespace %+v, want a schema, 0 records and at most %d records", found, api.DefaultNamespaceRecords)
	}
	ok[any](t, h.call(t, "DELETE", storage+"/namespaces/settings/schema", ""), 204)
	h.call(t, "DELETE", storage+"/namespaces/settings/schema", "").refused(t, 404, api.CodeDocumentNotFound)
	ok[any](t, h.call(t, "DELETE", storage+"/namespaces/settings", ""), 204)
	ok[any](t, h.call(t, "DELETE", h.at("T/installs/crm"), ""), 204)
	var got []string
	for _, event := range h.audit(t, h.tenant) {
		got = append(got, event.Method+" "+strings.TrimPrefix(event.Path, h.at("T/installs/crm"))+" "+event.Action)
	}
	const admin = " cs:storage:admin"
	slices.Sort(got)
	want := []string{
		"DELETE " + admin, "DELETE /storage/namespaces/settings" + admin, "DELETE /storage/namespaces/settings/schema" + admin,
		"DELETE /storage/namespaces/settings/schema" + admin, "PUT " + admin, "PUT /storage/namespaces/settings/schema" + admin,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheInternalEndpointNeedsItsToken(t *testing.T) {
	t.Parallel()
	h := startOn(t, embedded(t), func(c *controlplane.Config) { c.StorageToken = runnerToken })
	const path = "/api/internal/ext-storage/install/crm"
	body := fmt.Sprintf(`{"operation":"put","tenantId":%q,"namespace":"settings","key":"a","value":1}`, h.tenant)
	h.call(t, "POST", path, body).refused(t, 401, api.CodeAuthnRequired)
	for _, token := range []string{"", "x", runnerToken + "x", runnerToken[1:], strings.ToUpper(runnerToken)} {
		h.call(t, "POST", path, body, "Authorization", "Bearer "+token).refused(t, 401, api.CodeAuthnInvalid)
	}
	ok[api.Document](t, h.call(t, "POST", path, body, "Authorization", "Bearer "+runnerToken), 200)
	for name, body := range map[string]string{
		"operation":  `{"tenantId":"` + h.tenant + `","namespace":"settings","key":"a"}`,
		"operation ": `{"operation":"erase","tenantId":"` + h.tenant + `"}`,
		"tenantId":   `{"operation":"get","namespace":"settings","key":"a"}`,
		"tenantId ":  `{"operation":"get","tenantId":"acme","namespace":"settings","key":"a"}`,
		"tenantId  ": `{"operation":"get","tenantId":7,"namespace":"settings","key":"a"}`,
		"keyy":       `{"operation":"get","tenantId":"` + h.tenant + `","namespace":"settings","keyy":"a"}`,
	} {
		p := h.call(t, "POST", path, body, "Authorization", "Bearer "+runnerToken).refused(t, 400, api.CodeDocumentInvalid)
		if len(p.Errors) == 0 || p.Errors[0].Path != strings.TrimSpace(name) {
			t.Errorf("POST %s: got errors %+v, want one with the path %q first", body, p.Errors, strings.TrimSpace(name))
		}
	}
	// Without one there is no endpoint, and a short one does not start.
	start(t).call(t, "POST", path, body, "Authorization", "Bearer "+runnerToken).refused(t, 404, api.CodeRouteNotFound)
	if _, err := controlplane.New(t.Context(), h.store, h.engine, h.queue, controlplane.Config{StorageToken: "short"}); err == nil {
		t.Error("a short token is taken")
	}
}

// feedEvent is an event of a followed feed.
type feedEvent struct {
	id, name string
	change   api.DocumentChange
}

// followFeed returns the events of a feed until ctx or the stream ends.
func (h *harness) followFeed(ctx context.Context, t *testing.T, query, last string) <-chan feedEvent {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, "GET", h.URL+h.at("T/installs/crm/storage/namespaces/settings/changes?follow=true")+query, nil)
	if err != nil {
		t.Fatalf("NewRequestWithContext: %v", err)
	}
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := h.client.Do(request)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %v, want status 200 and Content-Type \"text/event-stream\"", response.StatusCode, response.Header)
	}
	events := make(chan feedEvent, 10_000)
	go func() {
		defer close(events)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		var e feedEvent
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				_ = json.Unmarshal([]byte(value), &e.change) // data that is not JSON leaves the id empty
			case "":
				if e.name != "" {
					events <- e
				}
				e = feedEvent{}
			}
		}
	}()
	return events
}

// A feed is followed without loss and without repetition, across connections and while
// many write.
func TestFollowersSeeEveryChangeOnce(t *testing.T) {
	t.Parallel()
	h := start(t)
	const writers, each = 4, 60
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				a := h.call(t, "PUT", h.record(fmt.Sprintf("k%d", w)), fmt.Sprintf(`{"value":%d}`, i))
				if a.status != 200 {
					t.Errorf("PUT: got %d %s, want status 200", a.status, a.body)
				}
			}
		})
	}
	var seen []int64
	revisions := map[string]int64{}
	last := ""
	for connection := 0; len(seen) < writers*each; connection++ {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		query := "&since=0"
		if connection > 0 {
			query = "&since=999999" // which Last-Event-ID replaces
		}
		taken := 0
		for e := range h.followFeed(ctx, t, query, last) {
			if e.name != "put" || e.id != fmt.Sprint(e.change.ID) {
				t.Fatalf("got event %+v, want a put whose id is that of its change", e)
			}
			if e.change.Revision != revisions[e.change.Key]+1 {
				t.Fatalf("got change %+v, want revision %d", e.change, revisions[e.change.Key]+1)
			}
			revisions[e.change.Key] = e.change.Revision
			seen, last = append(seen, e.change.ID), e.id
			taken++
			if taken == 17 || len(seen) == writers*each { // the client goes away amid the rest
				break
			}
		}
		if taken == 0 {
			t.Fatalf("the feed ended after %d of %d changes, want further events", len(seen), writers*each)
		}
		cancel()
	}
	writing.Wait()
	if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != writers*each {
		t.Errorf("got ids %v, want %d different ones in ascending order", seen, writers*each)
	}
	page := ok[struct {
		Items  []api.DocumentChange
		Latest int64
		Reset  bool
	}](t, h.call(t, "GET", h.at("T/installs/crm/storage/namespaces/settings/changes")+fmt.Sprintf("?since=%d&limit=5", seen[9]), ""), 200)
	if len(page.Items) != 5 || page.Items[0].ID != seen[10] || page.Reset || page.Latest != seen[len(seen)-1] {
		t.Errorf("got changes %+v, want 5 from id %d on, no reset and latest %d", page, seen[10], seen[len(seen)-1])
	}
}

func TestFeedsEndWithTheServer(t *testing.T) {
	t.Parallel()
	h := start(t)
	ok[api.Document](t, h.call(t, "PUT", h.record("a"), `{"value":1}`), 200)
	events := h.followFeed(t.Context(), t, "", "")
	if e := <-events; e.name != "put" {
		t.Fatalf("got %+v, want name \"put\"", e)
	}
	h.control.Drain()
	if e, more := <-events; e.name != "end" || !more {
		t.Errorf("got event %+v, want end", e)
	}
	if e, more := <-events; more {
		t.Errorf("got event %+v after the end, want none", e)
	}
}

// Followers cannot take all places: a tenant has half of them.
func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	h := startOn(t, embedded(t), func(c *controlplane.Config) { c.MaxWaits = 4 })
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		h.followFeed(ctx, t, "", "")
	}
	path := h.at("T/installs/crm/storage/namespaces/settings/changes?follow=true")
	h.call(t, "GET", path, "").refused(t, 429, api.CodeRateLimited)
	cancel() // and their places are free again
	deadline := time.Now().Add(10 * time.Second)
	for h.call(t, "HEAD", path, "").status != 200 {
		if time.Now().After(deadline) {
			t.Fatal("places are not given back")
		}
	}
}

func TestSilentFeedsSayThatTheyLive(t *testing.T) {
	t.Parallel()
	h := startOn(t, embedded(t), func(c *controlplane.Config) { c.KeepAlive = 5 * time.Millisecond })
	request, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+h.at("T/installs/crm/storage/namespaces/settings/changes?follow=true"), nil)
	if err != nil {
		t.Fatalf("NewRequestWithContext: %v", err)
	}
	response, err := h.client.Do(request)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for alive := 0; alive < 3 && lines.Scan(); {
		if lines.Text() == ": alive" {
			alive++
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("Err: %v", err)
	}
}

// Tenants that exceed their rate get a 429 with Retry-After.
func TestOperationsAreLimited(t *testing.T) {
	t.Parallel()
	now := newClock()
	h := storageHarness(t, embedded(t), documents.Config{Rate: 2, Clock: now.now})
	ok[api.Document](t, h.call(t, "PUT", h.record("a"), `{"value":1}`), 200)
	ok[api.Document](t, h.call(t, "GET", h.record("a"), ""), 200)
	a := h.call(t, "GET", h.record("a"), "")
	a.refused(t, 429, api.CodeRateLimited)
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q, want Retry-After \"1\"", a.header.Get("Retry-After"))
	}
	now.advance(500 * time.Millisecond)
	ok[api.Document](t, h.call(t, "GET", h.record("a"), ""), 200)
	h.call(t, "GET", h.record("a"), "").refused(t, 429, api.CodeRateLimited)
}
