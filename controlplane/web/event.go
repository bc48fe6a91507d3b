package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
)

// eventOf returns a request as its function sees it: an HTTP API event of version 2.0,
// as AWS Lambda has it, with the additional field path. All fields are always present.
// POST /v1/web/t_acme01/default/greet/prod/hello?x=1&x=2 with the body {} is
//
//	{"version":"2.0","routeKey":"$default","rawPath":"/v1/web/t_acme01/default/greet/prod/hello",
//	 "rawQueryString":"x=1&x=2","cookies":[],"headers":{"content-type":"application/json",…},
//	 "queryStringParameters":{"x":"1,2"},"requestContext":{"http":{"method":"POST",…}},
//	 "path":"/hello","body":"{}","isBase64Encoded":false}
//
// A body of text is a string, any other base64 (isText). The JSON is appended by hand into
// one buffer of about the right size: this is the hot path of every call.
//
// cookies are those that the function sees. cloud is the CloudEvents that the request carries:
// the member cloudEvent for one, or cloudEvents for a batch.
func eventOf(r *http.Request, rawPath, path string, body []byte, cookies []string, cloud cloudEvents) json.RawMessage {
	size := 512 + cloud.size() + 3*len(r.RequestURI) + base64.StdEncoding.EncodedLen(len(body))
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(`"":"",`)
		}
	}
	b := make([]byte, 0, size)
	b = append(b, `{"version":"2.0","routeKey":"$default","rawPath":`...)
	b = api.AppendJSONString(b, rawPath)
	b = append(b, `,"rawQueryString":`...)
	b = api.AppendJSONString(b, r.URL.RawQuery)
	b = append(b, `,"cookies":[`...)
	b = appendStrings(b, cookies)
	b = append(b, `],"headers":{`...)
	b = appendHeaders(b, r)
	b = append(b, `},"queryStringParameters":{`...)
	b = appendParameters(b, r.URL.RawQuery)
	b = append(b, `},"requestContext":{"http":{"method":`...)
	b = api.AppendJSONString(b, r.Method)
	b = append(b, `,"path":`...)
	b = api.AppendJSONString(b, rawPath)
	b = append(b, `,"sourceIp":`...)
	b = api.AppendJSONString(b, sourceIP(r.RemoteAddr))
	b = append(b, `,"userAgent":`...)
	b = api.AppendJSONString(b, r.Header.Get("User-Agent"))
	b = append(b, `}},"path":`...)
	b = api.AppendJSONString(b, path)
	switch {
	case cloud.one != nil:
		b = append(append(b, `,"cloudEvent":`...), cloud.one...)
	case cloud.batch != nil:
		b = append(append(b, `,"cloudEvents":`...), cloud.batch...)
	}
	if isText(r.Header.Get("Content-Type"), body) {
		b = append(b, `,"body":`...)
		b = api.AppendJSONString(b, string(body))
		return append(b, `,"isBase64Encoded":false}`...)
	}
	b = append(b, `,"body":"`...)
	b = base64.StdEncoding.AppendEncode(b, body)
	return append(b, `","isBase64Encoded":true}`...)
}

// isText reports whether a body arrives as text: it is UTF-8 without control characters, and
// its type is not that of bytes. A body without a type is judged by its bytes.
func isText(contentType string, body []byte) bool {
	if len(body) == 0 {
		return true
	}
	kind, subtype, _ := strings.Cut(strings.ToLower(contentType), "/")
	switch strings.TrimSpace(kind) {
	case "image", "audio", "video", "font", "model":
		if !strings.Contains(subtype, "svg+xml") {
			return false
		}
	case "application":
		subtype, _, _ = strings.Cut(subtype, ";")
		switch strings.TrimSpace(subtype) {
		case "octet-stream", "pdf", "zip", "gzip", "wasm", "protobuf", "x-protobuf", "grpc", "cbor", "msgpack", "x-msgpack":
			return false
		}
	}
	return utf8.Valid(body) && !bytes.ContainsFunc(body, isControl)
}

// isControl reports whether c is a control character that text does not have. JSON needs six
// bytes for one, so bodies of them are smaller in base64.
func isControl(c rune) bool { return c < ' ' && !strings.ContainsRune("\t\n\r\b\f", c) }

// sourceIP returns the address of the connection. Forwarded headers are left to the
// function, since any client can send them.
func sourceIP(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// cookies returns each cookie of all Cookie headers as one string.
func cookies(headers []string) []string {
	var all []string
	for _, header := range headers {
		for cookie := range strings.SplitSeq(header, ";") {
			if trimmed := strings.TrimSpace(cookie); trimmed != "" {
				all = append(all, trimmed)
			}
		}
	}
	return all
}

// appendStrings appends a list of strings without its brackets.
func appendStrings(b []byte, list []string) []byte {
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = api.AppendJSONString(b, s)
	}
	return b
}

// appendHeaders appends the headers except Cookie and our own keys, with names in lower
// case and sorted, and repeated ones joined by commas.
func appendHeaders(b []byte, r *http.Request) []byte {
	authorization := withoutCredentials(r.Header[access.HeaderAuthorization])
	var room [32]string
	names := room[:0]
	for name := range r.Header {
		if name != "Cookie" && (name != access.HeaderAuthorization || len(authorization) > 0) {
			names = append(names, name)
		}
	}
	names = append(names, "Host") // net/http keeps it outside of Header
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = api.AppendJSONString(b, strings.ToLower(name))
		b = append(b, ':')
		values := r.Header[name]
		if name == access.HeaderAuthorization {
			values = authorization
		}
		switch {
		case name == "Host":
			b = api.AppendJSONString(b, r.Host)
		case len(values) == 1:
			b = api.AppendJSONString(b, values[0])
		default:
			b = api.AppendJSONString(b, strings.Join(values, ","))
		}
	}
	return b
}

// appendParameters appends the query's parameters, decoded and sorted, repeated ones
// joined by commas. Parameters that cannot be decoded are only in rawQueryString.
func appendParameters(b []byte, rawQuery string) []byte {
	if rawQuery == "" {
		return b
	}
	parameters, _ := url.ParseQuery(rawQuery) // it returns the parameters that it could decode
	names := make([]string, 0, len(parameters))
	for name := range parameters {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = api.AppendJSONString(b, name)
		b = append(b, ':')
		b = api.AppendJSONString(b, strings.Join(parameters[name], ","))
	}
	return b
}

// withoutCredentials returns the values of an Authorization header without those that
// hold one of our keys: they are meant for the platform, and a function could use them.
// Other values are a matter between the function and its callers. nil means that no value
// is left, and that the event has no such header.
func withoutCredentials(values []string) []string {
	if !slices.ContainsFunc(values, api.ContainsKey) {
		return values
	}
	var kept []string
	for _, value := range values {
		if !api.ContainsKey(value) {
			kept = append(kept, value)
		}
	}
	return kept
}
