package controlplane_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// run begins an activation of hello and returns its record.
func (h *harness) run(t *testing.T, startMS int64) *activations.Record {
	t.Helper()
	a := &activations.Record{Activation: api.Activation{
		ActivationID: uuid.NewString(), Tenant: h.tenant, Namespace: "payments", Function: "hello",
		Ref: api.Ref{Alias: "prod", Version: 1}, Trigger: api.Trigger{Type: "http"}, Status: api.StatusRunning,
		StartMS: startMS, DeadlineMS: time.Now().UnixMilli() + 60_000, Attempt: 1,
	}}
	if created, _, err := activations.New(h.store).Start(t.Context(), a); err != nil || !created {
		t.Fatalf("Start: got %v %v, want no error, created", created, err)
	}
	return a
}

// finish ends it.
func (h *harness) finish(t *testing.T, a *activations.Record, status api.Status, result string) {
	t.Helper()
	final := *a
	final.Status, final.EndMS, final.DurationMS, final.Result = status, a.StartMS+5, 5, json.RawMessage(result)
	if won, _, err := activations.New(h.store).Finish(t.Context(), &final); err != nil || !won {
		t.Fatalf("Finish: got %v %v, want no error, won", won, err)
	}
}

// write appends lines as one chunk.
func (h *harness) write(t *testing.T, a *activations.Record, chunk int, messages ...string) {
	t.Helper()
	var ndjson []byte
	for _, m := range messages {
		line, err := json.Marshal(api.LogLine{TSMS: 1, Level: "info", Message: json.RawMessage(m), Attempt: 1})
		if err != nil {
			t.Fatalf("Marshal: %v", err)
		}
		ndjson = append(append(ndjson, line...), '\n')
	}
	if err := activations.NewLogs(h.store).Append(t.Context(), a, chunk, ndjson); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

// logs is the path of an activation's logs.
func (h *harness) logs(a *activations.Record, query string) string {
	return "/v1/tenants/" + h.tenant + "/activations/" + a.ActivationID + "/logs" + query
}

func TestLogsArePaged(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := startOn(t, s)
		a := h.run(t, time.Now().UnixMilli())
		empty := ok[api.Page[api.LogLine]](t, h.call(t, "GET", h.logs(a, ""), ""), 200)
		if len(empty.Items) != 0 || empty.NextCursor == nil {
			t.Errorf("before the first line: got page %+v, want no items and a next cursor", empty)
		}
		h.write(t, a, 0, `"a"`, `{"b":1}`, `"c"`)
		first := ok[api.Page[api.LogLine]](t, h.call(t, "GET", h.logs(a, "?limit=2&cursor="+*empty.NextCursor), ""), 200)
		h.write(t, a, 0, `"a"`, `{"b":1}`, `"c"`, `"d"`) // the chunk grows
		h.write(t, a, 1, `"e"`)
		second := ok[api.Page[api.LogLine]](t, h.call(t, "GET", h.logs(a, "?cursor="+*first.NextCursor), ""), 200)
		h.finish(t, a, api.StatusSuccess, `1`)
		third := ok[api.Page[api.LogLine]](t, h.call(t, "GET", h.logs(a, "?cursor="+*second.NextCursor), ""), 200)
		if third.NextCursor != nil || len(third.Items) != 0 {
			t.Errorf("after the end: got page %+v, want no items and no next cursor", third)
		}
		var got []string
		for _, line := range append(first.Items, second.Items...) {
			got = append(got, string(line.Message))
		}
		if diff := cmp.Diff([]string{`"a"`, `{"b":1}`, `"c"`, `"d"`, `"e"`}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// Another log's cursor is not this one's.
		h.call(t, "GET", h.logs(h.run(t, 1), "?cursor="+*first.NextCursor), "").refused(t, 400, api.CodeValidationCursor)
	})
}

// event is a server-sent event; a comment has only text.
type event struct{ id, name, data, comment string }

// events reads a stream to its end and hands each event on.
func events(t *testing.T, h *harness, path string, each func(event), headers ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", h.URL+path, nil)
	if err != nil {
		t.Fatalf("NewRequestWithContext: %v", err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := h.client.Do(request)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %s, want status 200 and Content-Type \"text/event-stream\"", response.StatusCode, response.Header.Get("Content-Type"))
	}
	var e event
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if value != "" {
				e.comment = value
				continue
			}
			each(e)
			e = event{}
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
}

func message(t *testing.T, e event) string {
	t.Helper()
	var line api.LogLine
	if err := json.Unmarshal([]byte(e.data), &line); err != nil {
		t.Fatalf("%v: Unmarshal: got %q, want no error", err, e.data)
	}
	return string(line.Message)
}

func TestLogsAreFollowedToTheEnd(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := startOn(t, s)
		a := h.run(t, time.Now().UnixMilli())
		h.write(t, a, 0, `"a"`)
		var got []string
		var second string
		events(t, h, h.logs(a, "?follow=true"), func(e event) {
			switch e.name {
			case "log":
				got = append(got, message(t, e))
				// Each line is written only when the one before has arrived.
				switch len(got) {
				case 1:
					h.write(t, a, 0, `"a"`, `"b"`)
				case 2:
					second = e.id
					h.write(t, a, 1, `"c"`, `"d"`)
					h.finish(t, a, api.StatusTimeout, ``)
				}
			case "end":
				got = append(got, e.data)
			}
		})
		want := []string{`"a"`, `"b"`, `"c"`, `"d"`, `{"status":"timeout"}`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for name, resume := range map[string][]string{
			"Last-Event-ID":          {"?follow=true", "Last-Event-ID", second},
			"cursor":                 {"?follow=true&cursor=" + second},
			"Last-Event-ID prevails": {"?follow=true&cursor=AAAA", "Last-Event-ID", second},
		} {
			got = nil
			events(t, h, h.logs(a, resume[0]), func(e event) {
				if e.name != "" {
					got = append(got, e.name+e.data)
				}
			}, resume[1:]...)
			if len(got) != 3 || !strings.Contains(got[0], `"c"`) || got[2] != `end{"status":"timeout"}` {
				t.Errorf("%s: got events %v, want 3, the first with line c, the last with end and status timeout", name, got)
			}
		}
		h.call(t, "GET", h.logs(a, "?follow=true"), "", "Last-Event-ID", "other").refused(t, 400, api.CodeValidationCursor)
		h.call(t, "GET", h.logs(a, "?follow=maybe"), "").refused(t, 422, api.CodeInvalid)
	})
}

func TestLongLogsAreFollowedInOrder(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.run(t, time.Now().UnixMilli())
	var want []string
	for chunk := range 4 {
		var lines []string
		for i := range 300 {
			lines = append(lines, fmt.Sprint(chunk*300+i))
		}
		h.write(t, a, chunk, lines...)
		want = append(want, lines...)
	}
	h.finish(t, a, api.StatusSuccess, `1`)
	var got []string
	events(t, h, h.logs(a, "?follow=1"), func(e event) {
		if e.name == "log" {
			got = append(got, message(t, e))
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSilentStreamsSayThatTheyAreAlive(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) { c.KeepAlive = 5 * time.Millisecond })
	a := h.run(t, time.Now().UnixMilli())
	alive, ended := 0, false
	events(t, h, h.logs(a, "?follow=true"), func(e event) {
		if e.comment == "alive" {
			alive++
			if alive == 2 {
				h.finish(t, a, api.StatusSuccess, `1`)
			}
		}
		ended = e.name == "end"
	})
	if alive < 2 || !ended {
		t.Errorf("got %d keep-alive comments and ended %v, want at least 2 and an end", alive, ended)
	}
}

// Followers cannot take all places: a tenant has half of them.
func TestFollowedLogsAreBounded(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) { c.MaxWaits = 2 })
	a := h.run(t, 1) // it runs until the end of the test
	events(t, h, h.logs(a, "?follow=true"), func(event) {
		refused := h.call(t, "GET", h.logs(a, "?follow=true"), "")
		refused.refused(t, 429, api.CodeCapacityLimit)
		if refused.header.Get("Retry-After") == "" {
			t.Error("got no Retry-After, want one")
		}
		h.control.Drain()
	})
}

func TestHeadDoesNotFollow(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.run(t, 1) // it runs until the end of the test
	got := h.call(t, "HEAD", "/v1/tenants/"+h.tenant+"/activations/"+a.ActivationID+"/logs?follow=true", "")
	if got.status != 200 || got.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: got %d %v, want status 200 and Content-Type \"text/event-stream\"", got.status, got.header)
	}
}

func TestStreamsEndWhenTheServerDrains(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.run(t, time.Now().UnixMilli())
	var names []string
	events(t, h, h.logs(a, "?follow=true"), func(e event) {
		names = append(names, e.name)
		h.control.Drain()
	})
	if diff := cmp.Diff([]string{""}, names); diff != "" {
		t.Errorf("only the first comment was to come: (-want +got):\n%s", diff)
	}
}

func TestActivations(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		h := startOn(t, s)
		base := time.Now().UnixMilli() - 100_000
		var newestFirst []string
		for i := range 5 {
			a := h.run(t, base+int64(i)*1000)
			h.finish(t, a, []api.Status{api.StatusSuccess, api.StatusError}[i%2], `{"n":1}`)
			newestFirst = append([]string{a.ActivationID}, newestFirst...)
		}
		list := "/v1/tenants/" + h.tenant + "/activations?namespace=payments&function=hello"
		for query, want := range map[string][]string{
			"":                newestFirst,
			"&status=error":   {newestFirst[1], newestFirst[3]},
			"&trigger=http":   newestFirst,
			"&trigger=api":    nil,
			"&status=running": nil,
			fmt.Sprintf("&from_ms=%d&to_ms=%d", base+1000, base+3000): newestFirst[2:4],
		} {
			for _, limit := range []int{1, 2, 500} {
				if diff := cmp.Diff(want, pages(t, h, list+query, "activation_id", limit)); diff != "" {
					t.Errorf("%s by %d: (-want +got):\n%s", query, limit, diff)
				}
			}
		}
		p := ok[api.Page[map[string]any]](t, h.call(t, "GET", list+"&limit=1", ""), 200)
		if _, has := p.Items[0]["result"]; has {
			t.Error("a list shows results")
		}
		h.call(t, "GET", list+"&status=error&cursor="+*p.NextCursor, "").refused(t, 400, api.CodeValidationCursor)

		one := "/v1/tenants/" + h.tenant + "/activations/" + newestFirst[0]
		if a := ok[api.Activation](t, h.call(t, "GET", one, ""), 200); string(a.Result) != `{"n":1}` {
			t.Errorf("result %s, want result {\"n\":1}", a.Result)
		}
		h.engine.cancel = func(_, id string) (*api.Activation, error) {
			return &api.Activation{ActivationID: id, Status: api.StatusCancelled}, nil
		}
		if a := ok[api.Activation](t, h.call(t, "POST", one+":cancel", ""), 200); a.Status != api.StatusCancelled || a.ActivationID != newestFirst[0] {
			t.Errorf("got activation %+v, want %s cancelled", a, newestFirst[0])
		}
		h.engine.cancel = func(string, string) (*api.Activation, error) {
			return nil, api.Errorf(api.CodeActivationTerminal, "x")
		}
		h.call(t, "POST", one+":cancel", "").refused(t, 409, api.CodeActivationTerminal)
	})
}
