package api

import (
	"bytes"
	"encoding/json"
)

// EncodeJSON is json.Marshal that leaves <, > and & alone: results, events and
// log messages are kept and answered as functions wrote them, and none of it
// goes into a page unescaped.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
