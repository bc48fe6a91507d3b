// Package dataurl reads data: URLs (https://fetch.spec.whatwg.org/#data-url-processor), and the
// media types in them.
package dataurl

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// Parse returns the content and the media type of a URL in its normal form that begins with
// "data:". It reports false if the URL has no comma, or a content that is not base64 where it
// should be. A malformed media type becomes text/plain;charset=US-ASCII.
func Parse(href string) (data []byte, mediaType string, ok bool) {
	rest, _, _ := strings.Cut(strings.TrimPrefix(href, "data:"), "#")
	given, encoded, ok := strings.Cut(rest, ",")
	if !ok {
		return nil, "", false
	}
	data = unescape(encoded)
	given = strings.Trim(given, asciiSpace)
	if head, found := cutBase64(given); found {
		given = head
		data, ok = DecodeBase64(string(data))
		if !ok {
			return nil, "", false
		}
	}
	if strings.HasPrefix(given, ";") {
		given = "text/plain" + given
	}
	mediaType, ok = MediaType(given)
	if !ok {
		mediaType = "text/plain;charset=US-ASCII"
	}
	return data, mediaType, true
}

const (
	httpSpace  = " \t\r\n"
	asciiSpace = httpSpace + "\f"
)

// cutBase64 returns the text before a semicolon, spaces and "base64" at the end.
func cutBase64(given string) (head string, ok bool) {
	const name = "base64"
	at := len(given) - len(name)
	if at < 0 || !strings.EqualFold(given[at:], name) {
		return given, false
	}
	return strings.CutSuffix(strings.TrimRight(given[:at], " "), ";")
}

// unescape decodes percent-encoded bytes, and keeps a percent sign without two digits.
func unescape(text string) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if b, err := url.PathUnescape(text[i : i+3]); err == nil {
				out = append(out, b...)
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

// DecodeBase64 is the forgiving base64 decode (https://infra.spec.whatwg.org/#forgiving-base64-decode).
func DecodeBase64(text string) ([]byte, bool) {
	text = strings.Map(func(c rune) rune {
		if strings.ContainsRune(asciiSpace, c) {
			return -1
		}
		return c
	}, text)
	if len(text)%4 == 0 {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
	}
	data, err := base64.RawStdEncoding.DecodeString(text)
	return data, err == nil
}

// MediaType parses and serializes a media type (https://mimesniff.spec.whatwg.org/#parsing-a-mime-type):
// the type and the names of parameters in lower case, the first of parameters of one name. It reports
// false for a malformed text.
func MediaType(text string) (string, bool) {
	essence, rest, more := strings.Cut(strings.Trim(text, httpSpace), ";")
	kind, subtype, ok := strings.Cut(strings.TrimRight(essence, httpSpace), "/")
	if !ok || !isToken(kind) || !isToken(subtype) {
		return "", false
	}
	var out strings.Builder
	out.WriteString(strings.ToLower(kind + "/" + subtype))
	seen := map[string]bool{}
	for more {
		var name, value string
		name, value, rest, more = parameter(strings.TrimLeft(rest, httpSpace))
		name = strings.ToLower(name)
		if !isToken(name) || strings.ContainsFunc(value, notQuotable) || seen[name] {
			continue
		}
		seen[name] = true
		if !isToken(value) {
			value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
		}
		out.WriteString(";" + name + "=" + value)
	}
	return out.String(), true
}

// parameter reads a parameter, and returns the text behind its semicolon as rest. An empty value, unless it is
// quoted, makes the name empty: there is no such parameter.
func parameter(text string) (name, value, rest string, more bool) {
	at := strings.IndexAny(text, ";=")
	if at < 0 {
		return "", "", "", false
	}
	if text[at] == ';' {
		return "", "", text[at+1:], true
	}
	name, text = text[:at], text[at+1:]
	if strings.HasPrefix(text, `"`) {
		value, text = quoted(text[1:])
		_, rest, more = strings.Cut(text, ";")
		return name, value, rest, more
	}
	value, rest, more = strings.Cut(text, ";")
	value = strings.TrimRight(value, httpSpace)
	if value == "" {
		name = ""
	}
	return name, value, rest, more
}

// quoted reads a quoted string behind its first quote. rest is the text behind the last one.
func quoted(text string) (value, rest string) {
	var out []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return string(out), text[i+1:]
		case c == '\\' && i+1 < len(text):
			i++
			out = append(out, text[i])
		default:
			out = append(out, c)
		}
	}
	return string(out), ""
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// notQuotable reports whether a quoted string cannot have a character.
func notQuotable(c rune) bool { return c != '\t' && (c < ' ' || c == 0x7f || c > 0xff) }
