package queue

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/codesous/sous/api"
)

const pathResultSchema = "result_schema"

// checkSchema refuses a JSON Schema for results that is none. CodeInvalid.
func (b *Broker) checkSchema(raw json.RawMessage) error {
	_, err := b.schemas.Get(string(raw), raw)
	var refused *api.Error
	if !errors.As(err, &refused) {
		return err
	}
	out := api.Errorf(api.CodeInvalid, "%s", inResultSchema(refused.Message))
	for _, field := range refused.Fields {
		field.Path = inResultSchema(field.Path)
		out = out.WithFields(field)
	}
	return out
}

// inResultSchema names the schema as the job does: its own name for it begins text.
func inResultSchema(text string) string {
	if rest, ok := strings.CutPrefix(text, "schema"); ok {
		return pathResultSchema + rest
	}
	return text
}

// checkResult refuses (CodeJobResult) a result that breaks its job's schema.
func (b *Broker) checkResult(raw, result json.RawMessage) error {
	judge, err := b.schemas.Get(string(raw), raw)
	if err != nil {
		return err
	}
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	err = judge.Check(result)
	var refused *api.Error
	if errors.As(err, &refused) {
		return api.Errorf(api.CodeJobResult, "the result breaks the job's schema: %s", refused.Message).WithFields(refused.Fields...)
	}
	return err
}
