package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	jobevent "github.com/codesous/sous/api/event"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage/storagetest"
)

// eventEntry is an entry of the log of events, as the scripts append it. An empty id is the time
// of the store.
// of is the subject without its last part, "" for jobs.
type eventEntry struct{ id, kind, queue, of, ids, details string }

// appendEvents adds an entry to the log of the harness's tenant.
func (h *harness) appendEvents(t *testing.T, e eventEntry) {
	t.Helper()
	id, details := e.id, e.details
	if id == "" {
		id = "*"
	}
	if details == "" {
		details = `{"attempt":1,"worker_id":"w1"}`
	}
	owner := []string{"queue", e.queue}
	if e.of != "" {
		owner = []string{"of", e.of}
	}
	err := h.store.Client().XAdd(t.Context(), &redis.XAddArgs{
		Stream: h.store.JobKeys(h.tenant).Events(), ID: id,
		Values: append(owner, "type", e.kind, "at", "1795523924998", "ids", e.ids, "details", details),
	}).Err()
	if err != nil {
		t.Fatalf("XAdd: %v", err)
	}
}

// someEvents appends events of two namespaces and two types.
func (h *harness) someEvents(t *testing.T) {
	t.Helper()
	for _, e := range []eventEntry{
		{id: "1795523920000-0", kind: jobevent.JobCompleted, queue: "payments/emails", ids: "a b"},
		{id: "1795523921000-0", kind: jobevent.JobCompleted, queue: "others/emails", ids: "c"},
		{id: "1795523922000-0", kind: jobevent.JobDead, queue: "payments/emails", ids: "d", details: `{"attempt":4,"error":"no such host","reason":"attempts"}`},
		{id: "1795523923000-0", kind: jobevent.JobCancelled, queue: "payments/fn.hello", ids: "e"},
	} {
		h.appendEvents(t, e)
	}
}

// subjects returns the ids of the jobs of a page.
func subjects(page jobevent.Page) string {
	var out []string
	for _, e := range page.Items {
		out = append(out, strings.TrimPrefix(e.Subject, "jobs/"))
	}
	return strings.Join(out, " ")
}

func (h *harness) listEvents(t *testing.T, query string) jobevent.Page {
	t.Helper()
	page := ok[jobevent.Page](t, h.call(t, "GET", h.at("T/events")+query, ""), 200)
	if page.NextCursor == nil {
		t.Errorf("events%s: got no next_cursor, want one", query)
	}
	return page
}

func TestEventsAreListed(t *testing.T) {
	t.Parallel()
	h := start(t)
	empty := h.listEvents(t, "")
	if len(empty.Items) != 0 {
		t.Errorf("an empty log: got %+v, want no events", empty)
	}
	h.someEvents(t)
	for query, want := range map[string]string{
		"":                                       "a b c d e",
		"?cursor=" + *empty.NextCursor:           "a b c d e",
		"?types=job.dead":                        "d",
		"?types=job.dead,job.cancelled":          "d e",
		"?types=job.dead&types=job.cancelled":    "d e",
		"?types=job.c*":                          "a b c e",
		"?types=job.started":                     "",
		"?queue=emails":                          "a b c d",
		"?queue=emails&namespace=payments":       "a b d",
		"?namespace=others":                      "c",
		"?namespace=nothing":                     "",
		"?function=hello":                        "e",
		"?queue=fn.hello":                        "e",
		"?since=1795523921000":                   "c d e",
		"?since=1795523921001":                   "d e",
		"?since=2026-11-24T12:38:42Z":            "d e",
		"?since=2026-11-24T14:38:42.001%2B02:00": "e",
		"?since=1795523924000":                   "",
		"?since=0":                               "a b c d e",
		"?limit=2":                               "a b",
		"?limit=2&types=job.dead":                "d",
	} {
		if got := subjects(h.listEvents(t, query)); got != want {
			t.Errorf("events%s: got %q, want %q", query, got, want)
		}
	}
	dead := h.listEvents(t, "?types=job.dead").Items[0]
	want := jobevent.Event{
		SpecVersion: "1.0", ID: "1795523922000-0.0", Source: "/v1/tenants/" + h.tenant, Type: "job.dead", Subject: "jobs/d", Time: "2026-11-24T12:38:44.998Z",
		Data: jobevent.Data{Namespace: "payments", Queue: "emails", Attempt: 4, Error: "no such host", Reason: "attempts"},
	}
	if diff := cmp.Diff(want, dead); diff != "" {
		t.Errorf("an event (-want +got):\n%s", diff)
	}
	for query, code := range map[string]api.Code{
		"?types=job.done":             api.CodeInvalid,
		"?queue=Emails":               api.CodeValidationName,
		"?function=fn.x":              api.CodeValidationName,
		"?namespace=a%20b":            api.CodeValidationName,
		"?since=yesterday":            api.CodeInvalid,
		"?since=-1":                   api.CodeInvalid,
		"?since=1900-01-01T00:00:00Z": api.CodeInvalid,
		"?limit=0":                    api.CodeInvalid,
		"?limit=501":                  api.CodeInvalid,
		"?cursor=AAAA":                api.CodeValidationCursor,
		"?cursor=" + *empty.NextCursor + "&types=job.dead": api.CodeValidationCursor,
		"?follow=true": api.CodeInvalid,
	} {
		for _, path := range []string{"T/events", "T/events:follow"} {
			a := h.call(t, "GET", h.at(path)+query, "")
			a.refused(t, a.status, code)
		}
	}
	h.call(t, "GET", h.at("T/events:follow"), "", "Last-Event-ID", "x").refused(t, 400, api.CodeValidationCursor)
}

// Pages continue each other, also behind the last event, and in a stream.
func TestPagesOfEventsContinue(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.someEvents(t)
	var got []string
	page := h.listEvents(t, "?limit=1&queue=emails")
	for range 4 {
		got = append(got, subjects(page))
		page = h.listEvents(t, "?limit=1&queue=emails&cursor="+*page.NextCursor)
	}
	if want := []string{"a", "b", "c", "d"}; !cmp.Equal(got, want) || len(page.Items) != 0 {
		t.Errorf("pages: got %q and %q, want %q and an empty one", got, subjects(page), want)
	}
	h.appendEvents(t, eventEntry{kind: jobevent.JobDead, queue: "payments/emails", ids: "f"})
	if got := subjects(h.listEvents(t, "?queue=emails&cursor="+*page.NextCursor)); got != "f" {
		t.Errorf("a later page: got %q, want f", got)
	}
	if got := h.follow(t, "?queue=emails&limit=1&cursor="+*page.NextCursor, ""); !cmp.Equal(got, []string{"job.dead f"}) {
		t.Errorf("a stream from the cursor: got %q, want the event f", got)
	}
}

// follow returns the events of a stream, which must end by its limit, as type and job.
func (h *harness) follow(t *testing.T, query, last string) []string {
	t.Helper()
	var got []string
	headers := []string{}
	if last != "" {
		headers = []string{"Last-Event-ID", last}
	}
	events(t, h, h.at("T/events:follow")+query, func(e event) {
		if e.name != "" {
			got = append(got, h.streamed(t, e))
		}
	}, headers...)
	return got
}

// streamed returns an event of a stream as type and job.
func (h *harness) streamed(t *testing.T, e event) string {
	t.Helper()
	var of jobevent.Event
	if err := json.Unmarshal([]byte(e.data), &of); err != nil {
		t.Fatalf("Unmarshal(%s): %v", e.data, err)
	}
	if e.name == "gap" {
		return e.name
	}
	if e.id != of.ID || e.name != of.Type {
		t.Errorf("got the event %s with the id %s for %s, want its type and its id", e.name, e.id, e.data)
	}
	return e.name + " " + strings.TrimPrefix(of.Subject, "jobs/")
}

// A stream has the events that are recorded after its begin; another continues where it ended.
func TestEventsAreFollowed(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.someEvents(t)
	var got []string
	begin, last := "", ""
	events(t, h, h.at("T/events:follow?types=job.dead&limit=2"), func(e event) {
		switch {
		case e.name != "":
			got, last = append(got, h.streamed(t, e)), e.id
			h.appendEvents(t, eventEntry{kind: jobevent.JobDead, queue: "payments/emails", ids: "h i"})
		case e.id != "" && begin == "":
			begin = e.id
			h.appendEvents(t, eventEntry{kind: jobevent.JobDead, queue: "payments/emails", ids: "f"})
			h.appendEvents(t, eventEntry{kind: jobevent.JobCompleted, queue: "payments/emails", ids: "g"})
		}
	})
	if want := []string{"job.dead f", "job.dead h"}; !cmp.Equal(got, want) {
		t.Errorf("events: got %q, want %q", got, want)
	}
	for _, tc := range []struct {
		query, last string
		want        []string
	}{
		{"?limit=1", last, []string{"job.dead i"}},
		{"?limit=2", begin, []string{"job.dead f", "job.completed g"}},
		{"?limit=2&since=1795523922000", "", []string{"job.dead d", "job.cancelled e"}},
		{"?limit=1&since=1795523922000", last, []string{"job.dead i"}},
		{"?limit=1&types=job.completed", begin, []string{"job.completed g"}},
	} {
		if got := h.follow(t, tc.query, tc.last); !cmp.Equal(got, tc.want) {
			t.Errorf("events%s behind %q: got %q, want %q", tc.query, tc.last, got, tc.want)
		}
	}
	if a := h.call(t, http.MethodHead, h.at("T/events:follow"), ""); a.status != 200 {
		t.Errorf("HEAD: got %d, want 200", a.status)
	}
}

// Clients are told that events behind their position are no longer kept, once.
func TestGapOfEvents(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.someEvents(t)
	first := h.listEvents(t, "?limit=1")
	if err := h.store.Client().XTrimMinID(t.Context(), h.store.JobKeys(h.tenant).Events(), "1795523922000-0").Err(); err != nil {
		t.Fatalf("XTrimMinID: %v", err)
	}
	page := h.listEvents(t, "?limit=1&cursor="+*first.NextCursor)
	if !page.Gap || subjects(page) != "d" {
		t.Errorf("a page behind lost events: got %q and gap %t, want d and true", subjects(page), page.Gap)
	}
	page = h.listEvents(t, "?cursor="+*page.NextCursor)
	if page.Gap || subjects(page) != "e" {
		t.Errorf("the next page: got %q and gap %t, want e and false", subjects(page), page.Gap)
	}
	if got, want := h.follow(t, "?limit=1", "1795523920000-0.0"), []string{"gap", "job.dead d"}; !cmp.Equal(got, want) {
		t.Errorf("a stream behind lost events: got %q, want %q", got, want)
	}
	// A client that selects none of the events gets a position behind the gap.
	resumed := ""
	events(t, h, h.at("T/events:follow?types=job.started&limit=1"), func(e event) {
		if e.name == "" && e.id != "" {
			resumed = e.id
			h.appendEvents(t, eventEntry{kind: jobevent.JobStarted, queue: "payments/emails", ids: "f"})
		}
	}, "Last-Event-ID", "1795523920000-0.0")
	if resumed != "1795523923000-0.0" {
		t.Errorf("the position behind the gap: got %q, want that of the last event", resumed)
	}
	// Without any event there is one gap, not one for each read.
	if err := h.store.Client().Del(t.Context(), h.store.JobKeys(h.tenant).Events()).Err(); err != nil {
		t.Fatalf("Del: %v", err)
	}
	var got []string
	events(t, h, h.at("T/events:follow?limit=1"), func(e event) {
		if e.name != "" {
			got = append(got, h.streamed(t, e))
		}
		if e.name == "gap" {
			h.appendEvents(t, eventEntry{kind: jobevent.JobDead, queue: "payments/emails", ids: "g"})
		}
	}, "Last-Event-ID", "1795523920000-0.0")
	if want := []string{"gap", "job.dead g"}; !cmp.Equal(got, want) {
		t.Errorf("a stream of an expired log: got %q, want %q", got, want)
	}
}

// A damaged entry is left out, in pages and streams.
func TestDamagedEvents(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.appendEvents(t, eventEntry{kind: jobevent.JobDead, queue: "payments/emails", ids: "a", details: "{"})
	h.appendEvents(t, eventEntry{kind: jobevent.JobDead, queue: "payments/emails", ids: "b"})
	if page := h.listEvents(t, ""); !page.Gap || subjects(page) != "b" {
		t.Errorf("a page: got %q and gap %t, want b and true", subjects(page), page.Gap)
	}
	if got, want := h.follow(t, "?since=0&limit=1", ""), []string{"gap", "job.dead b"}; !cmp.Equal(got, want) {
		t.Errorf("a stream: got %q, want %q", got, want)
	}
}

// A key of one namespace gets the events of that one only.
func TestEventsOfOtherNamespacesAreHidden(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.someEvents(t)
	key, _ := k.key(t, api.RoleViewer, inNamespace("payments"))
	list := k.at("T/events")
	if got := subjects(ok[jobevent.Page](t, k.as(t, key, "GET", list, ""), 200)); got != "a b d e" {
		t.Errorf("events: got %q, want those of its namespace", got)
	}
	if got := subjects(ok[jobevent.Page](t, k.as(t, key, "GET", list+"?namespace=payments&types=job.c*", ""), 200)); got != "a b e" {
		t.Errorf("events of its namespace: got %q, want a b e", got)
	}
	k.as(t, key, "GET", list+"?namespace=others", "").refused(t, 403, api.CodeAuthzDenied)
	k.as(t, key, "GET", list+":follow?namespace=others", "").refused(t, 403, api.CodeAuthzDenied)
	var got []string
	events(t, k.harness, list+":follow?since=0&limit=4", func(e event) {
		if e.name != "" {
			got = append(got, k.streamed(t, e))
		}
	}, "Authorization", "Bearer "+key)
	if want := []string{"job.completed a", "job.completed b", "job.dead d", "job.cancelled e"}; !cmp.Equal(got, want) {
		t.Errorf("followed: got %q, want %q", got, want)
	}
}

// Each filter selects events of all kinds, of which a caller gets those that its roles let it read.
func TestEventsOfAllKindsAreFiltered(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	detail := func(function, more string) string {
		return `{"namespace":"payments","function":"` + function + `"` + more + `,"actor":"key_1"}`
	}
	for _, e := range []eventEntry{
		{kind: jobevent.JobDead, queue: "payments/fn.hello", ids: "job"},
		{kind: jobevent.VersionPublished, of: "functions/payments/hello/versions", ids: "7", details: detail("hello", `,"version":7`)},
		{kind: jobevent.AliasSet, of: "functions/payments/other/aliases", ids: "prod", details: detail("other", "")},
		{kind: jobevent.FunctionCreated, of: "functions/payments", ids: "hello", details: detail("hello", "")},
		{kind: "schedule.fired", of: "schedules/payments", ids: "nightly", details: detail("hello", `,"queue":"fn.hello"`)},
		{kind: "batch.ended", of: "batches", ids: "b", details: `{"namespace":"payments"}`},
		{kind: "task.created", of: "tasks/reindex", ids: "42", details: `{"namespace":"payments","queue":"emails"}`},
		{kind: "later.kind", of: "laters", ids: "one", details: `{"namespace":"payments"}`},
		{kind: jobevent.FunctionDeleted, of: "functions/others", ids: "hello", details: `{"namespace":"others","function":"hello"}`},
	} {
		k.appendEvents(t, e)
	}
	for _, tt := range []struct{ role, query, want string }{
		{api.RoleViewer, "", "job functions/payments/hello/versions/7 functions/payments/other/aliases/prod functions/payments/hello schedules/payments/nightly batches/b tasks/reindex/42"},
		{api.RoleViewer, "?types=version.*,alias.set", "functions/payments/hello/versions/7 functions/payments/other/aliases/prod"},
		{api.RoleViewer, "?function=hello", "job functions/payments/hello/versions/7 functions/payments/hello schedules/payments/nightly"},
		{api.RoleViewer, "?queue=fn.hello", "job schedules/payments/nightly"},
		{api.RoleViewer, "?queue=emails", "tasks/reindex/42"},
		{api.RoleInvoker, "", "job"},
		{api.RoleWorker, "", "job tasks/reindex/42"},
	} {
		key, _ := k.key(t, tt.role, inNamespace("payments"))
		if got := subjects(ok[jobevent.Page](t, k.as(t, key, "GET", k.at("T/events")+tt.query, ""), 200)); got != tt.want {
			t.Errorf("events%s as %s: got %q, want %q", tt.query, tt.role, got, tt.want)
		}
	}
	key, _ := k.key(t, api.RoleViewer)
	page := ok[jobevent.Page](t, k.as(t, key, "GET", k.at("T/events?types=function.deleted,version.*"), ""), 200)
	if got, want := subjects(page), "functions/payments/hello/versions/7 functions/others/hello"; got != want {
		t.Fatalf("events of all namespaces: got %q, want %q", got, want)
	}
	if e := page.Items[0]; e.Actor != "key_1" || e.Data.Version != 7 || e.Data.Namespace != "payments" || e.Data.Queue != "" {
		t.Errorf("the event of a version: got %+v, want actor key_1 and version 7", e)
	}
}

// Changes that a key makes over the API have its id as their actor.
func TestEventsHaveTheirActor(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	key, made := k.key(t, api.RoleDeveloper)
	ok[api.Function](t, k.as(t, key, "POST", k.at("N/functions"), `{"name":"hello"}`), 201)
	page := ok[jobevent.Page](t, k.as(t, key, "GET", k.at("T/events?types=function.*"), ""), 200)
	if len(page.Items) != 1 || page.Items[0].Actor != made.ID || made.ID == "" {
		t.Errorf("events: got %+v, want one of actor %q", page.Items, made.ID)
	}
}

// Streams count against the requests of a tenant that wait.
func TestStreamsOfEventsWait(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) { c.MaxWaits = 2 })
	tried := false
	events(t, h, h.at("T/events:follow?limit=1"), func(e event) {
		if tried || e.id == "" {
			return
		}
		tried = true
		h.call(t, "GET", h.at("T/events:follow"), "").refused(t, 429, api.CodeCapacityLimit)
		ok[jobevent.Page](t, h.call(t, "GET", h.at("T/events"), ""), 200)
		h.appendEvents(t, eventEntry{kind: jobevent.JobDead, queue: "payments/emails", ids: "a"})
	})
	if !tried {
		t.Error("the stream: got no position, want one at its begin")
	}
}

// Two hundred followers of a tenant, with filters of their own, cost the reads of one.
func TestFollowersOfEventsShareReads(t *testing.T) {
	t.Parallel()
	h := start(t)
	const followers = 200
	var ready, done sync.WaitGroup
	ready.Add(followers)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range followers {
		want := []string{"a", "b", "c"}[i%3]
		done.Go(func() {
			begun := sync.OnceFunc(ready.Done)
			defer begun()
			query := url.Values{"queue": {want}, "limit": {"1"}}
			err := h.firstEvent(ctx, h.at("T/events:follow")+"?"+query.Encode(), begun, want)
			if err != nil {
				t.Errorf("follower %d: %v, want the event %s", i, err, want)
			}
		})
	}
	ready.Wait()
	reads := storagetest.CountCommands(h.store.Client(), "xrange")
	begin := time.Now()
	for n := range 30 {
		h.appendEvents(t, eventEntry{kind: jobevent.JobStarted, queue: "payments/others", ids: fmt.Sprint("o", n)})
	}
	for reads() < 5 { // some reads with nothing for anyone
		if ctx.Err() != nil {
			t.Fatal("the log is not read, want reads")
		}
		time.Sleep(time.Millisecond)
	}
	for _, queue := range []string{"a", "b", "c"} {
		h.appendEvents(t, eventEntry{kind: jobevent.JobDead, queue: "payments/" + queue, ids: queue})
	}
	done.Wait()
	const pause = 100 * time.Millisecond // as the documentation says
	if most := 10 + 2*int64(time.Since(begin)/pause); reads() > most {
		t.Errorf("%d followers cost %d reads in %s, want at most %d", followers, reads(), time.Since(begin), most)
	}
}

// firstEvent follows until the first event, which must be of the job want. It calls begun once the
// stream has begun.
func (h *harness) firstEvent(ctx context.Context, path string, begun func(), want string) error {
	request, err := http.NewRequestWithContext(ctx, "GET", h.URL+path, nil)
	if err != nil {
		return err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var text strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := response.Body.Read(buf)
		text.Write(buf[:n])
		if strings.Contains(text.String(), "id: ") {
			begun()
		}
		if strings.Contains(text.String(), `"subject":"jobs/`+want+`"`) {
			return nil
		}
		if err != nil {
			return errors.Join(err, fmt.Errorf("after %q", text.String()))
		}
	}
}
