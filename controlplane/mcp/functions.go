package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/storage"
)

// The bounds of a page of tools: a page ends when it has so many functions or so many bytes of schemas,
// or when so many functions were read that may be no tools.
const (
	pageTools    = 100
	pageBytes    = 256 << 10
	pageExamined = 1000
)

// The bounds of the cache of definitions: bytes, and the least that one counts.
const (
	definitionBytes = 32 << 20
	definitionLeast = 256
)

// catalogue finds the functions that are tools: those whose alias prod points at a version with an
// input_schema.
type catalogue struct {
	functions *storage.Functions
	aliases   *storage.Aliases
	versions  *storage.Versions
	engine    Authorizer
	// known has the definitions of versions, also of those that are no tools. Versions never change, so
	// an entry is never stale.
	known   *otter.Cache[versionKey, *definition]
	schemas *schema.Cache
}

type versionKey struct {
	tenant, namespace, function string
	version                     int64
}

// definition is a version as a tool.
type definition struct {
	function      string
	version       int64
	tool          bool
	description   string
	input, output json.RawMessage
	timeout       time.Duration
}

func newCatalogue(store *storage.Store, engine Authorizer) *catalogue {
	return &catalogue{
		functions: storage.NewFunctions(store), aliases: storage.NewAliases(store), versions: storage.NewVersions(store),
		engine: engine, schemas: schema.NewCache(),
		known: otter.Must(&otter.Options[versionKey, *definition]{
			MaximumWeight: definitionBytes,
			Weigher: func(_ versionKey, d *definition) uint32 {
				return uint32(definitionLeast + len(d.description) + len(d.input) + len(d.output))
			},
		}),
	}
}

// functionPrefix begins the names of tools whose functions have names like those of the platform's own
// tools. Names of functions have no capitals, so that two tools cannot have one name.
const functionPrefix = "F_"

// maxToolName is the length of the longest name of a tool.
const maxToolName = 64

// toolName returns the name of the tool of a function, "" if it has none.
func toolName(function string) string {
	if !strings.HasPrefix(function, platformPrefix) {
		return function
	}
	if len(functionPrefix)+len(function) > maxToolName {
		return ""
	}
	return functionPrefix + function
}

// functionNamed returns the name of the function that a tool stands for.
func functionNamed(tool string) string {
	if function, ok := strings.CutPrefix(tool, functionPrefix); ok && strings.HasPrefix(function, platformPrefix) {
		return function
	}
	return tool
}

// define returns the definition of a version.
func define(fn *api.Function, v *api.Version) *definition {
	d := &definition{function: fn.Name, version: v.Version}
	if len(v.Config.InputSchema) == 0 || toolName(fn.Name) == "" || v.Handles(api.TriggerAPI) != nil {
		return d
	}
	d.tool, d.input, d.output = true, v.Config.InputSchema, v.Config.OutputSchema
	d.timeout = time.Duration(v.Config.TimeoutMS) * time.Millisecond
	d.description = v.Config.Description
	if d.description == "" {
		d.description = "the function " + fn.Name
	}
	return d
}

// page returns the tools of the functions behind the name after, and the name to continue after, "" at
// the end. Only functions that the caller may invoke are tools for it.
func (c *catalogue) page(ctx context.Context, s *session, after string) (tools []*sdk.Tool, next string, err error) {
	if !s.may(access.FunctionInvoke) {
		return nil, "", nil
	}
	for size, examined := 0, 0; ; {
		functions, more, err := c.functions.List(ctx, s.tenant, s.namespace, after, api.MaxPageLimit)
		if err != nil {
			return nil, "", err
		}
		found, err := c.definitions(ctx, s, functions)
		if err != nil {
			return nil, "", err
		}
		for _, d := range found {
			after = d.function
			if d.tool && c.engine.Authorize(ctx, s.invocation(d)) == nil {
				tools = append(tools, d.describe())
				size += len(d.input) + len(d.output) + len(d.description)
			}
			if len(tools) >= pageTools || size >= pageBytes {
				return tools, after, nil
			}
		}
		examined += len(functions)
		if more == "" || examined >= pageExamined {
			return tools, more, nil
		}
		after = more
	}
}

// definitions returns the definitions of those functions that have the alias, in their order.
func (c *catalogue) definitions(ctx context.Context, s *session, functions []api.Function) ([]*definition, error) {
	names := make([]string, len(functions))
	for i := range functions {
		names[i] = functions[i].Name
	}
	numbers, err := c.aliases.Versions(ctx, s.tenant, s.namespace, names, api.DefaultAlias)
	if err != nil {
		return nil, err
	}
	var found []*definition
	var missing []int // indexes in functions
	places := map[int]int{}
	for i, n := range numbers {
		if n == 0 {
			continue
		}
		d, ok := c.known.GetIfPresent(versionKey{s.tenant, s.namespace, names[i], n})
		if !ok {
			places[i] = len(found)
			missing = append(missing, i)
		}
		found = append(found, d)
	}
	if len(missing) == 0 {
		return found, nil
	}
	wanted, at := make([]string, len(missing)), make([]int64, len(missing))
	for j, i := range missing {
		wanted[j], at[j] = names[i], numbers[i]
	}
	versions, err := c.versions.GetEach(ctx, s.tenant, s.namespace, wanted, at)
	if err != nil {
		return nil, err
	}
	for j, i := range missing {
		d := define(&functions[i], &versions[j])
		c.known.Set(versionKey{s.tenant, s.namespace, d.function, d.version}, d)
		found[places[i]] = d
	}
	return found, nil
}

// find returns the tool of a name, nil if there is none that the caller may call.
func (c *catalogue) find(ctx context.Context, s *session, tool string) (*definition, error) {
	function := functionNamed(tool)
	if !s.may(access.FunctionInvoke) || api.ValidateName("function", function) != nil || toolName(function) != tool {
		return nil, nil //nolint:nilnil,nilerr // documented
	}
	resolved, err := c.versions.Resolve(ctx, s.tenant, s.namespace, function, api.Ref{Alias: api.DefaultAlias})
	switch api.ErrorCode(err) {
	case "":
	case api.CodeFunctionNotFound, api.CodeAliasNotFound, api.CodeVersionNotFound:
		return nil, nil //nolint:nilnil // documented
	default:
		return nil, err
	}
	d := define(&resolved.Function, &resolved.Version)
	if !d.tool || c.engine.Authorize(ctx, s.invocation(d)) != nil {
		return nil, nil //nolint:nilnil,nilerr // documented
	}
	return d, nil
}

// invocation returns the invocation of a tool, without its event.
func (s *session) invocation(d *definition) *api.Invocation {
	inv := &api.Invocation{
		Tenant: s.tenant, Namespace: s.namespace, Function: d.function, Ref: api.Ref{Version: d.version},
		Trigger: api.Trigger{Type: api.TriggerAPI},
	}
	s.caller.Calls(inv)
	return inv
}

// describe returns the tool as the protocol has it.
func (d *definition) describe() *sdk.Tool {
	t := &sdk.Tool{Name: toolName(d.function), Description: d.description, InputSchema: d.input, Meta: sdk.Meta{metaVersion: d.version}}
	if len(d.output) > 0 {
		t.OutputSchema = d.output
	}
	return t
}

// The names of metadata of tools and results.
const (
	metaVersion    = "code-sous/version"
	metaActivation = "code-sous/activation_id"
)

// check returns why a value does not match a schema of the tool.
func (c *catalogue) check(text, value json.RawMessage) error {
	sum := sha256.Sum256(text)
	s, err := c.schemas.Get(string(sum[:]), text, schema.NewBudget())
	if err != nil {
		return err
	}
	return s.Check(value)
}

// call runs a function with the arguments as its event, if they match its schema. A result that does not
// match the other schema is an error: clients rely on it.
func (c *catalogue) call(ctx context.Context, s *session, d *definition, arguments json.RawMessage) (*sdk.CallToolResult, error) {
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	if err := c.check(d.input, arguments); err != nil {
		return failure(fmt.Errorf("the arguments do not match the input schema: %w", err)), nil
	}
	got, err := s.do(ctx, operation{
		method: http.MethodPost, path: s.functionPath(s.namespace, d.function) + ":invoke",
		body: map[string]any{"ref": map[string]any{"version": d.version}, "event": arguments},
	})
	if err != nil {
		return nil, err
	}
	var outcome api.InvokeResponse
	if err := json.Unmarshal(got.body, &outcome); err != nil {
		return nil, err
	}
	meta := sdk.Meta{metaActivation: outcome.ActivationID}
	switch {
	case outcome.Status != api.StatusSuccess:
		result := failure(fmt.Errorf("the function ended with the status %s: %s", outcome.Status, reason(outcome.Error)))
		result.Meta = meta
		return result, nil
	case outcome.ResultTruncated:
		result := failure(fmt.Errorf("the result is too large"))
		result.Meta = meta
		return result, nil
	}
	value := outcome.Result
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	if len(d.output) > 0 {
		if err := c.check(d.output, value); err != nil {
			result := failure(fmt.Errorf("the result does not match the output schema: %w", err))
			result.Meta = meta
			return result, nil
		}
	}
	result := structured(value)
	result.Meta = meta
	return result, nil
}

// reason describes the failure of an activation.
func reason(e *api.ActivationError) string {
	if e == nil {
		return "no error is known"
	}
	return fmt.Sprintf("%s: %s", e.Type, e.Message)
}

// structured returns a result with a value of JSON. Versions of the protocol before 2026-07-28 only have
// objects, so another value is the member result of one.
func structured(value json.RawMessage) *sdk.CallToolResult {
	object := value
	if value[0] != '{' {
		object = append(append([]byte(`{"result":`), value...), '}')
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(value)}}, StructuredContent: object}
}
