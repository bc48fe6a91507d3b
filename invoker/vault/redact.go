package vault

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codesous/sous/api"
)

// redacted stands in the place of a secret.
const redacted = "***"

// Bounds of the search. A shorter text would be found in almost any line; a hostile value
// of many lines must not make the server hold a pattern for each.
const (
	minRedacted      = 4 // characters
	maxRedactedLines = 512
	maxRedactedForms = 8192    // of the secrets of a version
	maxRunBytes      = 4 << 20 // of the forms of all that a run has read while they changed
	maxRunChanges    = 64      // of a run; each rebuilds its forms
)

// redactor replaces secrets in text: their values, the lines of values, and the forms
// in which both are commonly written. All forms are found in one pass (see matcher). A nil
// redactor finds nothing.
//
// The secret p"w 1, for example, is found as p"w 1, as p\"w 1 within JSON, as p%22w%201 and
// p%22w+1 within URLs, and in base64 at any offset. Values under minRedacted characters are
// not looked for. A function can still disguise a value, for example by reversing it: the
// redactor prevents accidents, not intent.
type redactor struct{ matcher *matcher }

// newRedactor returns a redactor of values, nil if there is nothing to find. Beyond
// maxRedactedForms further forms are left out: those of lines first, then base64, so that
// each value itself is found. pause, which may be nil, is called from time to time.
func newRedactor(values []string, pause func()) *redactor {
	found := map[form]bool{}
	add := func(forms []string) {
		for _, text := range forms {
			if utf8.RuneCountInString(text) >= minRedacted && len(found) < maxRedactedForms {
				found[newForm(text)] = true
			}
		}
		if pause != nil {
			pause()
		}
	}
	for _, value := range values { // the most important forms first: their number is bounded
		add(writtenForms(value))
	}
	for _, value := range values {
		add(base64Forms(value))
	}
	for _, value := range values {
		for _, line := range linesOf(value) {
			add(writtenForms(line))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &redactor{newMatcher(slices.Collect(maps.Keys(found)))}
}

// with returns a redactor that finds the forms of both. If one form contains another, the
// longer one is found. ok is false if the result takes more than maxRunBytes.
func (r *redactor) with(other *redactor) (both *redactor, ok bool) {
	m := newMatcher(slices.Concat(r.matcher.forms, other.matcher.forms))
	return &redactor{m}, m.size() <= maxRunBytes
}

// same reports whether both find the same forms. A redactor that was dropped from memory and
// built again from the same values is the same.
func (r *redactor) same(other *redactor) bool {
	return r == other || r != nil && other != nil && slices.Equal(r.matcher.forms, other.matcher.forms)
}

// size returns the memory that the redactor takes, in bytes.
func (r *redactor) size() int {
	if r == nil {
		return 0
	}
	return r.matcher.size()
}

// linesOf returns the lines of a value, without blanks around them: a private key is often
// logged line by line. It returns none for a value that is one line without blanks around
// it, which writtenForms covers.
func linesOf(value string) []string {
	if !strings.Contains(value, "\n") && strings.TrimSpace(value) == value {
		return nil
	}
	var lines []string
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if utf8.RuneCountInString(line) < minRedacted {
			continue
		}
		lines = append(lines, line)
		if len(lines) == maxRedactedLines {
			break
		}
	}
	return lines
}

// writtenForms returns a text itself, and its forms in JSON as JavaScript and Go write it, in
// the output of console, and in URLs.
func writtenForms(text string) []string {
	if utf8.RuneCountInString(text) < minRedacted {
		return nil
	}
	query := url.QueryEscape(text)
	once := jsonForms(text)
	// As console writes texts within objects.
	inspected := strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(text)
	forms := append([]string{text, inspected, query, url.PathEscape(text), uriComponent(query), uri(text), strings.ReplaceAll(uri(text), "'", "%27")}, once...)
	for _, form := range once { // JSON as a text within JSON
		if form != text {
			forms = append(forms, jsonForms(form)...)
		}
	}
	return forms
}

// jsonForms returns the text's JSON string without its quotes: as JSON.stringify writes it,
// and as Go writes it with and without escapes for HTML.
func jsonForms(text string) []string {
	safe, err := json.Marshal(text)
	plain, plainErr := api.EncodeJSON(text)
	if err != nil || plainErr != nil { // a string always encodes
		return nil
	}
	inside := func(b []byte) string { return string(b[1 : len(b)-1]) }
	// JavaScript writes the two separators as they are.
	script := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(inside(plain))
	return []string{script, inside(plain), inside(safe)}
}

// uriComponent turns a result of url.QueryEscape into that of encodeURIComponent.
func uriComponent(query string) string {
	return strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(query)
}

// uri returns text as encodeURI does.
func uri(text string) string {
	component := uriComponent(url.QueryEscape(text))
	return strings.NewReplacer("%3B", ";", "%2C", ",", "%2F", "/", "%3F", "?", "%3A", ":", "%40", "@", "%26", "&", "%3D", "=", "%2B", "+", "%24", "$", "%23", "#").
		Replace(component)
}

// base64Forms returns a value in base64, alone and at each of the three offsets that it may
// have in a longer text. Three bytes are four characters, so the characters at both ends
// may hold bits of the neighbours, and are left out. The secret s3cret-42 in longer texts:
//
//	offset 0   s3cret-42yy     czNjcmV0LTQyeXk=    found: czNjcmV0LTQy
//	offset 1   xs3cret-42yy    eHMzY3JldC00Mnl5    found: MzY3JldC00M
//	offset 2   xxs3cret-42yy   eHhzM2NyZXQtNDJ5eQ== found: zM2NyZXQtND
func base64Forms(value string) []string {
	if utf8.RuneCountInString(value) < minRedacted {
		return nil
	}
	var forms []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, encoding.EncodeToString([]byte(value)))
		raw := encoding.WithPadding(base64.NoPadding)
		forms = append(forms, raw.EncodeToString([]byte(value)))
		for before := range 3 {
			text := raw.EncodeToString(append(make([]byte, before), value...))
			whole := (before + len(value)) * 8 / 6 // characters without bits of what follows
			if first := before * 8 / 6; before > 0 {
				text = text[first+1 : whole]
			} else {
				text = text[:whole]
			}
			if len(text) >= 2*minRedacted { // a shorter one stands in much base64
				forms = append(forms, text)
			}
		}
	}
	return forms
}

// text returns s without secrets. searched is false if the search would have taken too long:
// out is then redacted, in the place of all of s. pause, which may be nil, is called from time to
// time in a long search.
func (r *redactor) text(s string, pause func()) (out string, searched bool) {
	if r == nil {
		return s, true
	}
	return r.matcher.replace(s, pause)
}

// truncated is text for a string that may have been truncated to limit bytes, in the middle of a
// secret. If s ends with the first minRedacted or more bytes of a secret, they are replaced too.
func (r *redactor) truncated(s string, limit int, pause func()) string {
	out, _ := r.text(s, pause)
	if r == nil || len(s) <= limit-utf8.UTFMax {
		return out
	}
	if at := r.matcher.unfinished(out); at < len(out) {
		out = out[:at] + redacted
	}
	return out
}

// line returns the text of a log line without secrets, the same slice if it holds none.
// searched is as in text.
func (r *redactor) line(text []byte, pause func()) (out []byte, searched bool) {
	if r == nil {
		return text, true
	}
	s := string(text)
	clean, searched := r.text(s, pause)
	if clean == s {
		return text, searched
	}
	return []byte(clean), searched
}

// failure returns an error without secrets, as a copy. Type is one of the platform's own
// words and needs no search.
func (r *redactor) failure(e *api.ActivationError, pause func()) *api.ActivationError {
	if r == nil || e == nil {
		return e
	}
	clean := *e
	clean.Message = r.truncated(e.Message, api.MaxErrorMessageBytes, pause)
	clean.Stack = r.truncated(e.Stack, api.MaxErrorStackBytes, pause)
	clean.Code = r.truncated(e.Code, api.MaxErrorCodeBytes, pause)
	return &clean
}
