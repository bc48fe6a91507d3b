// Package resultschema checks the JSON Schemas of the results of jobs, and results against them.
package resultschema

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// pathResultSchema is the field of a job that holds the JSON Schema of its result.
const pathResultSchema = "result_schema"

// Checker checks schemas and results. It is safe for concurrent use.
type Checker struct{ schemas *schema.Cache }

// New returns a Checker without compiled schemas.
func New() *Checker { return &Checker{schema.NewCache()} }

// CheckSchema checks that raw is a valid JSON Schema: CodeInvalid. Compiled schemas are cached
// by their text, so that the ack of a job with the same schema need not compile it again.
func (c *Checker) CheckSchema(raw json.RawMessage, budget *schema.Budget) error {
	_, err := c.schemas.Get(string(raw), raw, budget)
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Code == api.CodeBodyLimit {
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

// CheckSchemas bounds the number of schemas that differ in an enqueue: CodeInvalid.
func CheckSchemas(jobs []api.NewJob) error {
	distinct := map[string]bool{}
	for i := range jobs {
		for o := range jobs[i].All() {
			if len(o.ResultSchema) > 0 {
				distinct[string(o.ResultSchema)] = true
			}
			if len(distinct) > api.MaxEnqueueSchemas {
				return jobstore.AtIndex(api.InvalidField(pathResultSchema, "is one of more than "+strconv.Itoa(api.MaxEnqueueSchemas)+" that differ in one call"), i)
			}
		}
	}
	return nil
}

// CheckResult checks a result against its job's schema raw: CodeJobResult, or CodeBodyLimit if
// the results of the call have used up its budget.
func (c *Checker) CheckResult(raw, result json.RawMessage, budget *schema.Budget) error {
	rules, err := c.schemas.Get(string(raw), raw, budget)
	if err != nil {
		return err
	}
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	err = rules.CheckWithin(result, budget)
	var refused *api.Error
	if errors.As(err, &refused) && refused.Code != api.CodeBodyLimit {
		return api.Errorf(api.CodeJobResult, "the result does not match the job's result_schema: %s", refused.Message).WithFields(refused.Fields...)
	}
	return err
}
