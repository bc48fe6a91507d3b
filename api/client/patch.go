package client

import (
	"encoding/json"

	"github.com/codesous/sous/api"
)

// encodePatch encodes the fields of a partial update, and null for each name of
// without, which removes the field or sets its default. fields must not have a
// MarshalJSON method that calls encodePatch.
func encodePatch(fields any, without []string) ([]byte, error) {
	raw, err := api.EncodeJSON(fields)
	if err != nil || len(without) == 0 {
		return raw, err
	}
	patch := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &patch); err != nil {
		return nil, err
	}
	for _, name := range without {
		patch[name] = json.RawMessage("null")
	}
	return api.EncodeJSON(patch)
}
