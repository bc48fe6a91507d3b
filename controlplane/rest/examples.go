package rest

import (
	_ "embed" // examples.json
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// examplesText holds an example of every operation. The requests are those of
// controlplane/testdata/story.txt and the answers are the server's: go test
// ./controlplane -run TestExamples -update writes the file.
//
//go:embed examples.json
var examplesText []byte

// example is the example of an operation.
type example struct {
	Parameters map[string]string `json:"parameters"`
	Request    json.RawMessage   `json:"request"`
	Status     int               `json:"status"`
	Answer     json.RawMessage   `json:"answer"`
}

// addExamples adds the examples to the operations of the document. An operation without one
// stays as it is: a test finds it.
func addExamples(document *huma.OpenAPI) error {
	all := map[string]example{}
	if err := json.Unmarshal(examplesText, &all); err != nil {
		return fmt.Errorf("rest: examples of the OpenAPI document: %w", err)
	}
	for _, item := range document.Paths {
		for _, op := range operations(item) {
			if e, ok := all[op.OperationID]; ok {
				e.addTo(op)
			}
		}
	}
	return nil
}

func (e *example) addTo(op *huma.Operation) {
	for _, p := range op.Parameters {
		value, ok := e.Parameters[p.Name]
		switch {
		case !ok:
		case p.Schema.Type == huma.TypeInteger, p.Schema.Type == huma.TypeBoolean:
			p.Example = json.RawMessage(value)
		case p.Schema.Type == huma.TypeArray: // of texts, separated by commas
			p.Example = strings.Split(value, ",")
		default:
			p.Example = value
		}
	}
	if op.RequestBody != nil && e.Request != nil {
		for contentType, media := range op.RequestBody.Content {
			if contentType == ContentTypeJSON || contentType == "*/*" {
				media.Example = e.Request
			}
		}
	}
	if response := e.response(op); response != nil && e.Answer != nil {
		for contentType, media := range response.Content {
			if contentType != ContentTypeEvents && contentType != "text/csv" {
				media.Example = e.Answer
			}
		}
	}
}

// response returns the answer of op that the example is of, nil if op has none.
func (e *example) response(op *huma.Operation) *huma.Response {
	status := strconv.Itoa(e.Status)
	if response := op.Responses[status]; response != nil {
		return response
	}
	return op.Responses[status[:1]+"XX"]
}
