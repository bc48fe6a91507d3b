package mirror

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codesous/sous/api"
)

// MaxWordBytes is how much of a payload, a result or an error the full-text search finds, in bytes.
const MaxWordBytes = 4 << 10

// words are the texts of a job that the full-text search finds.
type words struct{ tenant, id, queue, payload, tags, failure, result string }

func wordsOf(tenant string, v *api.Job) words {
	return words{
		tenant: TenantWord(tenant), id: v.ID, queue: v.Queue, payload: jsonText(v.Payload), tags: tagText(v.Tags),
		failure: errorText(v.Errors), result: jsonText(v.Result),
	}
}

// errorText returns the texts of errors, the last first.
func errorText(errors []api.JobError) string {
	if len(errors) == 0 {
		return ""
	}
	var b strings.Builder
	for _, e := range slices.Backward(errors) {
		if b.Len() >= MaxWordBytes {
			break
		}
		b.WriteString(e.Error)
		b.WriteByte(' ')
	}
	return shortText(b.String())
}

// tagText returns the keys and values of tags.
func tagText(tags map[string]string) string {
	if len(tags) == 0 {
		return ""
	}
	parts := make([]string, 0, len(tags))
	for key, value := range tags {
		parts = append(parts, key+" "+value)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// shortText returns the first MaxWordBytes of text.
func shortText(text string) string {
	if len(text) <= MaxWordBytes {
		return text
	}
	return strings.ToValidUTF8(text[:MaxWordBytes], "")
}

// jsonText returns the first MaxWordBytes of a JSON value as a text of its words: the names and the
// values, with the characters that their escapes stand for. The punctuation stays, since it ends words.
func jsonText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	text := shortText(string(raw))
	at := strings.IndexByte(text, '\\')
	if at < 0 {
		return text
	}
	b := make([]byte, 0, len(text))
	for at >= 0 {
		b = append(b, text[:at]...)
		decoded, n := unescape(text[at:])
		b, text = utf8.AppendRune(b, decoded), text[at+n:]
		at = strings.IndexByte(text, '\\')
	}
	return string(append(b, text...))
}

// unescape returns the character of the escape at the begin of text, and its length in text. Escapes
// of no letter are a blank.
func unescape(text string) (r rune, n int) {
	if len(text) < 2 || text[1] != 'u' {
		return ' ', min(len(text), 2)
	}
	var quoted string
	end := min(len(text), 6)
	if len(text) >= 12 && text[6] == '\\' { // it may be half of a pair
		if err := json.Unmarshal([]byte(`"`+text[:12]+`"`), &quoted); err == nil && utf8.RuneCountInString(quoted) == 1 {
			r, _ = utf8.DecodeRuneInString(quoted)
			return r, 12
		}
	}
	if err := json.Unmarshal([]byte(`"`+text[:end]+`"`), &quoted); err != nil {
		return ' ', end
	}
	r, _ = utf8.DecodeRuneInString(quoted)
	return r, end
}
