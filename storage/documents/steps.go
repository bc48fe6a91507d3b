package documents

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
)

// newStep validates item and converts it to a Step with compact JSON: limits and quotas do
// not count the spaces between tokens. The error has CodeDocumentInvalid and names the first
// invalid field; the Step then still has the key, for the check of repeated keys.
func newStep(op string, item *api.DocumentItem, nowMS int64) (Step, error) {
	step := Step{Op: op, Key: item.Key, If: item.IfRevision}
	if err := api.ValidateDocumentKey(item.Key); err != nil {
		return step, err
	}
	if item.IfRevision != nil && *item.IfRevision < 0 {
		return step, api.DocumentFieldError("ifRevision", "must be 0 (no document) or more")
	}
	if op != api.DocumentStepPut {
		return step, onlyKey(op, item)
	}
	if len(item.Value) == 0 {
		return step, api.DocumentFieldError("value", "is required")
	}
	var err error
	step.Value, err = compact(item.Value)
	if err != nil {
		return step, api.DocumentFieldError("value", "is not JSON")
	}
	if len(step.Value) > api.MaxDocumentValueBytes {
		return step, api.DocumentFieldError("value", "exceeds "+api.SizeText(api.MaxDocumentValueBytes))
	}
	if nesting(step.Value) > api.MaxDocumentNesting {
		return step, api.DocumentFieldError("value", fmt.Sprintf("nests more than %d levels deep", api.MaxDocumentNesting))
	}
	step.Metadata, err = compactMetadata(item.Metadata)
	if err != nil {
		return step, err
	}
	if ttl := item.TTLSeconds; ttl != nil {
		if *ttl < api.MinDocumentTTLSeconds || *ttl > api.MaxDocumentTTLSeconds {
			return step, api.DocumentFieldError("ttlSeconds", api.RangeRule("ttlSeconds", api.MinDocumentTTLSeconds, api.MaxDocumentTTLSeconds))
		}
		step.ExpiresAtMS = nowMS + *ttl*1000
	}
	return step, nil
}

// onlyKey refuses the fields that a check or a delete does not have; null counts as
// absent.
func onlyKey(op string, item *api.DocumentItem) error {
	present := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
	switch {
	case present(item.Value):
		return api.DocumentFieldError("value", "is allowed for put only")
	case present(item.Metadata):
		return api.DocumentFieldError("metadata", "is allowed for put only")
	case item.TTLSeconds != nil:
		return api.DocumentFieldError("ttlSeconds", "is allowed for put only")
	case op == api.DocumentStepCheck && item.IfRevision == nil:
		return api.DocumentFieldError("ifRevision", "is required of a check")
	}
	return nil
}

// noMetadata is the metadata of a document that is put without any.
var noMetadata = json.RawMessage(`{}`)

// compactMetadata returns raw as compact JSON; absent and null are {}. CodeDocumentInvalid for
// anything but an object of at most api.MaxDocumentMetadataBytes.
func compactMetadata(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return noMetadata, nil
	}
	short, err := compact(raw)
	switch {
	case err != nil || short[0] != '{':
		return nil, api.DocumentFieldError("metadata", "must be a JSON object")
	case len(short) > api.MaxDocumentMetadataBytes:
		return nil, api.DocumentFieldError("metadata", "exceeds "+api.SizeText(api.MaxDocumentMetadataBytes))
	}
	return short, nil
}

// failure is the error of one item of several.
type failure struct {
	index int
	err   error
}

// failed combines failures in one error with the given code, or with the code of the first
// failure where code is "". list is the name of the request's list: a field "value" of the
// third item becomes "items[2].value". failed returns nil where nothing failed, and an error
// without a code as it is.
func failed(code api.Code, list string, failures []failure) error {
	if len(failures) == 0 {
		return nil
	}
	e := &api.Error{Code: code}
	for _, f := range failures {
		var of *api.Error
		if !errors.As(f.err, &of) {
			return f.err
		}
		if e.Code == "" {
			e.Code = of.Code
		}
		if e.Message == "" {
			e.Message = fmt.Sprintf("%s[%d]: %s", list, f.index, of.Message)
		}
		e.Items = append(e.Items, api.ItemError{Index: f.index, Code: of.Code, Message: of.Message})
		for _, field := range of.Fields {
			if len(e.Fields) < schema.MaxOffences {
				field.Path = fmt.Sprintf("%s[%d].%s", list, f.index, field.Path)
				e.Fields = append(e.Fields, field)
			}
		}
	}
	return e
}

// storeFailures returns the failures of single steps in an error of the repository; nil
// where the error is not about steps.
func storeFailures(err error) []failure {
	var e *api.Error
	if !errors.As(err, &e) {
		return nil
	}
	failures := make([]failure, 0, len(e.Items))
	for _, item := range e.Items {
		failures = append(failures, failure{item.Index, api.Errorf(item.Code, "%s", item.Message)})
	}
	return failures
}
