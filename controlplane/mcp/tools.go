package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/jsonsize"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/controlplane/access"
)

// platformPrefix begins the names of the platform's own tools.
const platformPrefix = "sous_"

// tool is a tool of the platform.
type tool struct {
	name, title, description string
	// action is that of the tool's main route. The tool is listed for callers whose roles grant it.
	action access.Action
	hints  sdk.ToolAnnotations
	// properties are those of the schema of the arguments, as JSON.
	properties string
	required   []string
	// run answers with JSON: an object.
	run func(ctx context.Context, s *session, arguments json.RawMessage) (json.RawMessage, error)

	compiled func() (*schema.Schema, error)
}

// by makes the run of a tool from a function of its decoded arguments.
func by[A any](run func(context.Context, *session, A) (json.RawMessage, error)) func(context.Context, *session, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, s *session, arguments json.RawMessage) (json.RawMessage, error) {
		var a A
		if !jsonsize.Fits(arguments, reflect.TypeOf(a), jsonsize.Elements) {
			return nil, fmt.Errorf("the arguments have too many values")
		}
		if err := json.Unmarshal(arguments, &a); err != nil {
			return nil, fmt.Errorf("the arguments cannot be read: %w", err)
		}
		return run(ctx, s, a)
	}
}

var (
	readOnly = sdk.ToolAnnotations{ReadOnlyHint: true}
	repeats  = sdk.ToolAnnotations{IdempotentHint: true}
)

// Properties that several tools have.
const (
	inNamespace = `"namespace": {"type": "string", "description": "default: that of this endpoint"}`
	ofFunction  = inNamespace + `, "function": {"type": "string", "description": "the name of the function"}`
	ofPage      = `"limit": {"type": "integer", "minimum": 1, "maximum": 500}, "cursor": {"type": "string", "description": "next_cursor of the previous page"}`
	ofVersion   = `"version": {"type": "integer", "minimum": 1, "description": "default: the version that the alias points at"}, "alias": {"type": "string", "description": "default: prod"}`
	ofFiles     = `"files": {"type": "object", "additionalProperties": {"type": "string"}, "description": "paths to contents as text: function.js or function.ts, and optionally manifest.json and further modules"}, ` +
		`"config": {"type": "object", "description": "settings over the manifest, such as timeout_ms, env, authz, description, input_schema, output_schema. Settings that are left out stay as they are in the running version; null returns one to its default"}`
	ofEvent = `"event": {"description": "the input of the function: any JSON value"}`
)

// platformTools returns the tools of the platform.
var platformTools = sync.OnceValue(func() []*tool {
	all := append(functionTools(), runTools()...)
	all = append(all, jobTools()...)
	for _, t := range all {
		t.compiled = sync.OnceValues(func() (*schema.Schema, error) { return schema.Compile(t.schema()) })
	}
	return all
})

// platformTool returns the tool of a name, nil if there is none.
func platformTool(name string) *tool {
	for _, t := range platformTools() {
		if t.name == name {
			return t
		}
	}
	return nil
}

// schema returns the schema of the arguments.
func (t *tool) schema() json.RawMessage {
	required := ""
	if len(t.required) > 0 {
		required = `, "required": ["` + strings.Join(t.required, `", "`) + `"]`
	}
	return json.RawMessage(`{"type": "object", "additionalProperties": false, "properties": {` + t.properties + `}` + required + `}`)
}

// describe returns the tool as the protocol has it.
func (t *tool) describe() *sdk.Tool {
	hints := t.hints
	return &sdk.Tool{Name: t.name, Title: t.title, Description: t.description, InputSchema: t.schema(), Annotations: &hints}
}

// call runs the tool. The routes that it calls decide whether the caller may.
func (t *tool) call(ctx context.Context, s *session, arguments json.RawMessage) (*sdk.CallToolResult, error) {
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	compiled, err := t.compiled()
	if err != nil {
		return nil, err
	}
	if err := compiled.Check(arguments); err != nil {
		return failure(fmt.Errorf("the arguments do not match the input schema: %w", err)), nil
	}
	got, err := t.run(ctx, s, arguments)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case codeOf(err) != "":
		return nil, err
	case err != nil:
		return failure(err), nil
	}
	return structured(bytes.TrimSpace(got)), nil
}

// place is a namespace, and a function in it, as arguments name them.
type place struct {
	Namespace string `json:"namespace"`
	Function  string `json:"function"`
}

// in returns the namespace of a tool's arguments.
func (s *session) in(namespace string) string {
	if namespace == "" {
		return s.namespace
	}
	return namespace
}

// path returns a path below the function of a tool's arguments.
func (p place) path(s *session, parts ...string) string {
	return s.functionPath(s.in(p.Namespace), p.Function, parts...)
}

// encode returns v as the JSON of a result, which has the bound of the answer of a route.
func encode(v any) (json.RawMessage, error) {
	raw, err := api.EncodeJSON(v)
	if err == nil && len(raw) > maxAnswer {
		return nil, fmt.Errorf("the answer exceeds %s", api.SizeText(maxAnswer))
	}
	return raw, err
}
