package web

import (
	"net/http"
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
		if got := cloudEventOf(r, []byte(tt.body)); string(got) != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
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
