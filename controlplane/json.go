package controlplane

import (
	"bytes"
	"encoding/json"
)

// encodeLine writes v as it goes out in answers, on one line that ends as lines
// do. Unlike json.Marshal it leaves <, > and & alone: a result is answered as it
// was returned, and answers are no part of a page.
func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return b.Bytes(), err
}

// encodeJSON is encodeLine without the line's end.
func encodeJSON(v any) ([]byte, error) {
	b, err := encodeLine(v)
	return bytes.TrimSuffix(b, []byte{'\n'}), err
}
