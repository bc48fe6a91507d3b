package web

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzEvent makes the event of a request of anything: headers, cookies, query, body, and the
// CloudEvents that they may hold. The event is JSON of one object, whatever the request is.
func FuzzEvent(f *testing.F) {
	f.Add("application/json", "a=1; b=2", "x=1&x=2&%zz", "/a%2Fb", "", []byte(`{"a":1}`))
	f.Add("application/cloudevents+json; charset=utf-8", "=;;=a", "&&=", "/", "", []byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":[1]}}`))
	f.Add("application/cloudevents-batch+json", "", "", "/", "", []byte(`[{"specversion":"1.0"}]`))
	f.Add("text/plain", "a=\xff", "\xff=\x00", "/\u2028", "1.0", []byte("\xff\xfe"))
	f.Add("image/png", strings.Repeat("a=b; ", 50), "a[]=1", "/..", "1.0", []byte("data"))
	f.Fuzz(func(t *testing.T, contentType, cookie, query, path, specversion string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/web/t/n/f/prod", nil)
		r.URL = &url.URL{Path: path, RawQuery: query}
		r.Header = http.Header{"Content-Type": {contentType}, "Cookie": {cookie}, "X-Any": {path, query}}
		if specversion != "" {
			r.Header["Ce-Specversion"] = []string{specversion}
			r.Header["Ce-Id"], r.Header["Ce-Source"], r.Header["Ce-Type"] = []string{cookie}, []string{path}, []string{query}
		}
		cloud := cloudEventsOf(r, body)
		for _, member := range []json.RawMessage{cloud.one, cloud.batch} {
			if member != nil && !json.Valid(member) {
				t.Errorf("cloudEventsOf = %q, want JSON", member)
			}
		}
		var event map[string]json.RawMessage
		if raw := eventOf(r, path, path, body, []string{cookie}, cloud); json.Unmarshal(raw, &event) != nil {
			t.Errorf("eventOf = %q, want an object of JSON", raw)
		}
	})
}

// FuzzResponse maps what a function returns: headers that HTTP cannot carry never reach the
// answer.
func FuzzResponse(f *testing.F) {
	for _, seed := range []string{
		`200`, `{"statusCode":200,"headers":{"a":"b"},"cookies":["a=b"],"body":"x"}`, `{"statusCode":204}`, `{"statusCode":"200"}`,
		`{"statusCode":200,"headers":{"a\r\nb":"c"}}`, `{"statusCode":200,"headers":{"a":"b\r\nSet-Cookie: c"}}`,
		`{"statusCode":200,"headers":{"transfer-encoding":["chunked"]},"isBase64Encoded":true,"body":"eA=="}`, `{"statusCode":99}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var object responseObject
		if !members(raw, object.set) || object.status == nil {
			return
		}
		answer, err := mapObject(&object)
		if err != nil {
			return
		}
		if answer.status < 200 || answer.status > 599 {
			t.Errorf("mapObject(%q) = status %d, want 200 to 599", raw, answer.status)
		}
		for name, values := range answer.header {
			if isConnectionHeader(name) || strings.ContainsAny(name+strings.Join(values, ""), "\r\n\x00") {
				t.Errorf("mapObject(%q) has the header %q: %q, want none that HTTP cannot carry", raw, name, values)
			}
		}
	})
}

// FuzzMembers: the members of an object of JSON are those that encoding/json finds, and their texts
// are the same.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : 1 , "b":[1,{"c":"}"}] } `, `{"a":"\\","b":"\"","c":"\ud83d\ude00\ud800"}`, `{"a":1,"a":2}`, `{"\u0061":null}`,
		`{"a":}`, `{"a"}`, `{"a":1}x`, `[1]`, `{`, `{"a":"`, "{\"a\":\"\xff\"}", `{"a":-1.5e3,"b":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := map[string]json.RawMessage{}
		ok := members(raw, func(name string, value json.RawMessage) bool { got[name] = value; return true })
		var want map[string]json.RawMessage
		if json.Unmarshal(raw, &want) != nil || want == nil {
			return // anything may be said of it, but it must not panic
		}
		if !ok || !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("members(%q): got %q, %v, want %q", raw, got, ok, want)
		}
		for name, value := range want {
			var decoded string
			isText := value[0] == '"' && json.Unmarshal(value, &decoded) == nil
			if got, ok := text(value); ok != isText || string(got) != decoded {
				t.Errorf("text of %q: got %q, %v, want %q, %v", name, got, ok, decoded, isText)
			}
		}
	})
}

// FuzzCookies: a cookie that a function on the shared origin sets is sent to its own path only, and
// the function reads the cookie back. It sees no cookie that it did not set.
func FuzzCookies(f *testing.F) {
	for _, seed := range [][2]string{
		{"a=b", ""}, {"a=b; Path=/; Domain=example.com; HttpOnly", "x=y"}, {"__Secure-a=b; secure", "__Secure-a=c"}, {"__host-a=b", "__Host-a=c"},
		{"=b", "=;;="}, {"a", "a"}, {"a=b;path=/v1/web/t/n/f/x/../../g", "fn-00-a=1"}, {"a=b;Path = /v1/web/t/n/other", "a=\xff"}, {" a = b ;;; Max-Age=0", " a = b "},
	} {
		f.Add(seed[0], seed[1])
	}
	own, other := &target{tenant: "t", namespace: "n", function: "f", shared: true}, &target{tenant: "t", namespace: "n", function: "g", shared: true}
	f.Fuzz(func(t *testing.T, line, foreign string) {
		if strings.ContainsAny(line, "\r\n\x00") {
			return // mapObject refuses it
		}
		if strings.Contains(foreign, "fn-") {
			return // a cookie with a mark is the function's, as far as a request shows
		}
		if seen := own.cookies([]string{foreign}); len(seen) > 0 {
			t.Errorf("cookies(%q) = %q, want none without the mark", foreign, seen)
		}
		set, ok := own.ownCookie(line)
		if !ok {
			return
		}
		pair, attributes, _ := strings.Cut(set, ";")
		last := attributes[strings.LastIndex(attributes, ";")+1:]
		if path, found := strings.CutPrefix(last, " Path="); !found || path != own.root() && !strings.HasPrefix(path, own.root()+"/") {
			t.Errorf("ownCookie(%q) = %q, want a path of the function at the end", line, set)
		}
		for attribute := range strings.SplitSeq(attributes, ";") {
			if key, _, _ := strings.Cut(attribute, "="); strings.EqualFold(strings.TrimSpace(key), "domain") {
				t.Errorf("ownCookie(%q) = %q, want no domain", line, set)
			}
		}
		if seen := other.cookies([]string{pair}); len(seen) > 0 {
			t.Errorf("another function sees %q of %q, want nothing", seen, pair)
		}
		name, value, _ := strings.Cut(strings.Split(line, ";")[0], "=")
		want := strings.TrimSpace(strings.TrimSpace(name) + "=" + value)
		if seen := own.cookies([]string{pair}); len(seen) != 1 || seen[0] != want {
			t.Errorf("ownCookie(%q) = %q, of which the function sees %q, want %q", line, set, seen, want)
		}
	})
}
