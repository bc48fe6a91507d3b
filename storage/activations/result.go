package activations

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/codesous/sous/api"
)

// TruncateResult gives what is stored of a result: the result itself up to
// api.MaxStoredResultBytes, else a JSON string that holds that many first bytes
// of its text (less what would split a character), and truncated.
func TruncateResult(result json.RawMessage) (stored json.RawMessage, truncated bool) {
	if len(result) <= api.MaxStoredResultBytes {
		return result, false
	}
	cut := api.MaxStoredResultBytes
	for cut > 0 && !utf8.RuneStart(result[cut]) {
		cut--
	}
	text, err := api.EncodeJSON(string(result[:cut]))
	if err != nil {
		// A string always encodes; an empty one is the safe answer all the same.
		return json.RawMessage(`""`), true
	}
	return text, true
}
