package queue

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/codesous/sous/api"
)

// pathResultSchema is the field of a job that holds the JSON Schema of its result.
const pathResultSchema = "result_schema"

// checkSchema checks that raw is a valid JSON Schema: CodeInvalid. Compiled schemas are cached
// by their text, so that the ack of a job with the same schema need not compile it again.
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

// inResultSchema replaces the name "schema" at the beginning of text, which package schema
// uses, by the name of the job's field.
func inResultSchema(text string) string {
	if rest, ok := strings.CutPrefix(text, "schema"); ok {
		return pathResultSchema + rest
	}
	return text
}

// checkResult checks a result against its job's schema raw: CodeJobResult.
func (b *Broker) checkResult(raw, result json.RawMessage) error {
	rules, err := b.schemas.Get(string(raw), raw)
	if err != nil {
		return err
	}
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	err = rules.Check(result)
	var refused *api.Error
	if errors.As(err, &refused) {
		return api.Errorf(api.CodeJobResult, "the result does not match the job's result_schema: %s", refused.Message).WithFields(refused.Fields...)
	}
	return err
}
