package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	attributes := map[string]string{"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/a%20b", "Ce-Type": "t"}
	with := func(more ...string) map[string]string {
		out := map[string]string{}
		for name, value := range attributes {
			out[name] = value
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	for name, tt := range map[string]struct {
		headers    map[string]string
		body, want string
	}{
		"none":           {map[string]string{"Content-Type": "application/json"}, `{"specversion":"1.0"}`, ""},
		"binary, JSON":   {with("Content-Type", "application/json; charset=utf-8", "Ce-Region", "eu"), `{"a":1}`, `{"data":{"a":1},"datacontenttype":"application/json; charset=utf-8","id":"1","region":"eu","source":"/a b","specversion":"1.0","type":"t"}`},
		"binary, text":   {with("Content-Type", "text/plain"), `hi`, `{"data":"hi","datacontenttype":"text/plain","id":"1","source":"/a b","specversion":"1.0","type":"t"}`},
		"binary, bytes":  {with("Content-Type", "image/png"), `hi`, `{"data_base64":"aGk=","datacontenttype":"image/png","id":"1","source":"/a b","specversion":"1.0","type":"t"}`},
		"binary, empty":  {with("Ce-Data", "x"), ``, `{"id":"1","source":"/a b","specversion":"1.0","type":"t"}`},
		"structured":     {map[string]string{"Content-Type": "application/CloudEvents+json; charset=utf-8"}, `{"specversion":"1.0","id":"1","source":"/a","type":"t","data":[1]}`, `{"data":[1],"id":"1","source":"/a","specversion":"1.0","type":"t"}`},
		"without an id":  {map[string]string{"Ce-Specversion": "1.0", "Ce-Source": "/a", "Ce-Type": "t"}, ``, ""},
		"not an object":  {map[string]string{"Content-Type": "application/cloudevents+json"}, `null`, ""},
		"a number as id": {map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":"1.0","id":1,"source":"/a","type":"t"}`, ""},
		"too large":      {with(), strings.Repeat("x", maxCloudEvent+1), ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		if err != nil {
			t.Fatalf("http.NewRequest: %v", err)
		}
		for key, value := range tt.headers {
			r.Header.Set(key, value)
		}
		if got := cloudEventsOf(r, []byte(tt.body)); string(got.one) != tt.want || got.batch != nil {
			t.Errorf("%s: got %s and the batch %s, want %s and none", name, got.one, got.batch, tt.want)
		}
	}
}

func TestCloudEventBatches(t *testing.T) {
	t.Parallel()
	const event = `{"data":[1],"id":"1","source":"/a","specversion":"1.0","type":"t"}`
	for name, tt := range map[string]struct{ contentType, body, want string }{
		"two":               {"application/cloudevents-batch+json", `[` + event + `,` + event + `]`, `[` + event + `,` + event + `]`},
		"with a parameter":  {"Application/CloudEvents-Batch+JSON; charset=utf-8", `[` + event + `]`, `[` + event + `]`},
		"none":              {"application/cloudevents-batch+json", `[]`, `[]`},
		"one is malformed":  {"application/cloudevents-batch+json", `[` + event + `,{"id":"2"}]`, ``},
		"one is no object":  {"application/cloudevents-batch+json", `[` + event + `,null]`, ``},
		"not an array":      {"application/cloudevents-batch+json", event, ``},
		"null":              {"application/cloudevents-batch+json", `null`, ``},
		"not JSON":          {"application/cloudevents-batch+json", `[`, ``},
		"an array as event": {"application/cloudevents+json", `[` + event + `]`, ``},
		"too large":         {"application/cloudevents-batch+json", `[` + strings.Repeat(" ", maxCloudEvent) + `]`, ``},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x", nil)
		r.Header.Set("Content-Type", tt.contentType)
		got := cloudEventsOf(r, []byte(tt.body))
		if string(got.batch) != tt.want || got.one != nil {
			t.Errorf("%s: got the batch %s and the event %s, want %s and none", name, got.batch, got.one, tt.want)
		}
		var seen struct {
			CloudEvents json.RawMessage `json:"cloudEvents"`
			Body        string          `json:"body"`
		}
		if err := json.Unmarshal(eventOf(r, "/x", "/x", []byte(tt.body), nil, got), &seen); err != nil {
			t.Errorf("%s: the event is no JSON: %v", name, err)
		}
		if string(seen.CloudEvents) != tt.want || seen.Body != tt.body {
			t.Errorf("%s: got the member cloudEvents %s and the body %.80s, want %s and the body of the request", name, seen.CloudEvents, seen.Body, tt.want)
		}
	}
}

// TestTextBodies: only text arrives as text, so that its JSON is small.
func TestTextBodies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		contentType, body string
		want              bool
	}{
		{"", "", true}, {"", "hé", true}, {"", "\xff", false}, {"text/plain", "a\x00", false}, {"text/plain", "a\n\t\r", true},
		{"application/json", "{}", true}, {"image/png", "a", false}, {"image/svg+xml", "<svg/>", true}, {"application", "a", true}, {"Application/PDF", "a", false}, {"/", "a", true},
		{"application/octet-stream", "a", false}, {"application/x-protobuf; a=b", "a", false}, {"multipart/form-data; boundary=x", "--x", true},
	} {
		if got := isText(tt.contentType, []byte(tt.body)); got != tt.want {
			t.Errorf("isText(%q, %q) = %v, want %v", tt.contentType, tt.body, got, tt.want)
		}
	}
}

// CloudEvents with many attributes, and batches of many, are malformed. That is found out without
// decoding them.
func TestCloudEventsAreBounded(t *testing.T) { // not parallel: it measures the allocations
	const required = `"specversion":"1.0","id":"1","source":"/a","type":"t"`
	event := func(attributes int, more string) string {
		var b strings.Builder
		b.WriteString("{" + required)
		for i := range attributes {
			fmt.Fprintf(&b, `,"%05d":1`, i)
		}
		return b.String() + more + "}"
	}
	for name, tt := range map[string]struct {
		batch bool
		body  string
		ok    bool
	}{
		"100 attributes":              {false, event(96, ""), true},
		"101 attributes":              {false, event(97, ""), false},
		"100,000 attributes":          {false, event(100_000, ""), false},
		"a name 100,000 times":        {false, event(0, strings.Repeat(`,"a":1`, 100_000)), false},
		"large data":                  {false, event(0, `,"data":`+listOf(200_000, `1`)), true},
		"1,000 events":                {true, listOf(1000, event(0, "")), true},
		"1,001 events":                {true, listOf(1001, event(0, "")), false},
		"19,000 events":               {true, listOf(19_000, `{"specversion":"1.0","id":"1","source":"/","type":"t"}`), false},
		"300,000 events":              {true, listOf(300_000, `{}`), false},
		"an event of 101 attributes":  {true, `[` + event(0, "") + `,` + event(97, "") + `]`, false},
		"1,000 events, 90 attributes": {true, listOf(1000, event(0, strings.Repeat(`,"a":1`, 90))), true},
	} {
		if len(tt.body) > maxCloudEvent {
			t.Errorf("%s: got a body of %d bytes, want at most %d", name, len(tt.body), maxCloudEvent)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x", nil)
		r.Header.Set("Content-Type", "application/cloudevents+json")
		if tt.batch {
			r.Header.Set("Content-Type", "application/cloudevents-batch+json")
		}
		body := []byte(tt.body)
		var got cloudEvents
		took := allocated(func() { got = cloudEventsOf(r, body) })
		if found := got.one != nil || got.batch != nil; found != tt.ok || got.size() > 0 && !json.Valid(append(got.one, got.batch...)) {
			t.Errorf("%s: got %.80s and the batch %.80s, want some JSON: %t", name, got.one, got.batch, tt.ok)
		}
		most := uint64(64 << 10)
		if tt.ok {
			most = uint64(4*len(body)) + 64<<10
		}
		if took > most {
			t.Errorf("%s: a body of %d bytes allocated %d, want at most %d", name, len(body), took, most)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x", nil)
	for _, name := range []string{"Specversion", "Id", "Source", "Type"} {
		r.Header.Set("Ce-"+name, "1.0")
	}
	for i := range 97 {
		r.Header.Set(fmt.Sprintf("Ce-X%d", i), "1")
	}
	if got := cloudEventsOf(r, nil); got.one != nil {
		t.Errorf("101 attributes in headers: got %.80s, want none", got.one)
	}
	r.Header.Del("Ce-X0")
	if got := cloudEventsOf(r, nil); got.one == nil {
		t.Error("100 attributes in headers: got none, want the event")
	}
}
