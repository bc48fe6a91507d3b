package activations

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/codesous/sous/api"
)

// TruncateResult returns the stored form of a result: the result itself, or, if it exceeds
// api.MaxStoredResultBytes, a JSON string of that many leading bytes of its text, less a
// split character. The quotes and escapes of the string come on top of that size, so the
// stored form can be longer than the limit. truncated reports the second case.
func TruncateResult(result json.RawMessage) (stored json.RawMessage, truncated bool) {
	return truncateResult(result, api.MaxStoredResultBytes)
}

// truncateResult is TruncateResult with another limit.
func truncateResult(result json.RawMessage, limit int) (stored json.RawMessage, truncated bool) {
	if len(result) <= limit {
		return result, false
	}
	end := limit
	for end > 0 && !utf8.RuneStart(result[end]) {
		end--
	}
	text, err := api.EncodeJSON(string(result[:end]))
	if err != nil {
		// A string always encodes; an empty one is the safe answer all the same.
		return json.RawMessage(`""`), true
	}
	return text, true
}
