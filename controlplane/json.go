package controlplane

import (
	"bytes"
	"encoding/json"
)

// encodeJSON writes v as it goes out in answers, on one line. Unlike
// json.Marshal it leaves <, > and & alone: a result is answered as it was
// returned, and answers are no part of a page.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
