package rest

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // docs.html
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest/docexample"
)

const (
	pathDocs    = "/docs/reference"
	pathOpenAPI = "/openapi.json"
)

//go:embed docs.html
var docsText string

// docsScript sends the requests of the page's forms.
//
//go:embed docs.js
var docsScript string

// docsPolicy admits docsScript and no other script. The page calls only its own server.
var docsPolicy = func() string {
	sum := sha256.Sum256([]byte(docsScript))
	return "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

var docsTemplate = template.Must(template.New("docs").Parse(docsText))

// documentEndpoints declares the OpenAPI document and the page made of it. Neither is
// described in the document.
func (s *Server) documentEndpoints() []Endpoint {
	return []Endpoint{
		Handle(Route{Method: http.MethodGet, Path: pathDocs, Action: access.Public, Extent: NoNamespace}, s.docs),
		Handle(Route{Method: http.MethodGet, Path: pathOpenAPI, Action: access.Public, Extent: NoNamespace}, s.openapiDocument),
	}
}

// openapiDocument serves the OpenAPI 3.1 document.
func (s *Server) openapiDocument(w http.ResponseWriter, r *http.Request) error {
	return s.writePage(w, r, "application/openapi+json", s.openapi)
}

// docs serves the readable page. It is rendered once and loads nothing, so that
// it can be read without a network; its script only sends the requests of its forms.
func (s *Server) docs(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Security-Policy", docsPolicy)
	return s.writePage(w, r, "text/html; charset=utf-8", s.docsPage)
}

// writePage answers with a page, which is rendered on its first request.
func (s *Server) writePage(w http.ResponseWriter, r *http.Request, contentType string, page func() ([]byte, error)) error {
	body, err := page()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	if _, err := w.Write(body); err != nil {
		s.log.Debug("a page was not delivered", zap.String("request_id", RequestID(r.Context())), zap.Error(err))
	}
	return nil
}

// The data of the page's template.
type (
	docsView struct {
		Title, Version, Description string
		Groups                      []docsGroup
		Script                      template.JS
	}
	docsGroup struct {
		Name       string
		Operations []docsOperation
	}
	docsOperation struct {
		ID, Method, Path, Summary, Description string
		Parameters                             []docsParameter
		Bodies                                 []docsBody
		// Curl is an example request, and Answer its answer with the status.
		Curl, Answer string
		// Example and Body begin the form that sends a request.
		Example, Body string
		HasBody       bool
	}
	docsParameter struct {
		Name, In, Type, Description string
		Required                    bool
	}
	docsBody struct{ Title, Schema string }
)

// renderDocs returns the page that describes a document.
func renderDocs(document *huma.OpenAPI) ([]byte, error) {
	view := docsView{Title: document.Info.Title, Version: document.Info.Version, Description: document.Info.Description}
	view.Script = template.JS(docsScript) //nolint:gosec // it is a constant of the program
	groups := map[string][]docsOperation{}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, op := range operations(document.Paths[path]) {
			groups[op.Tags[0]] = append(groups[op.Tags[0]], docsOperationOf(document, op))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		view.Groups = append(view.Groups, docsGroup{name, groups[name]})
	}
	var buf bytes.Buffer
	if err := docsTemplate.Execute(&buf, view); err != nil {
		return nil, fmt.Errorf("rest: docs page: %w", err)
	}
	return buf.Bytes(), nil
}

// operations returns the operations of a path, in the usual order.
func operations(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}

func docsOperationOf(document *huma.OpenAPI, op *huma.Operation) docsOperation {
	d := docsOperation{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description}
	for _, p := range op.Parameters {
		d.Parameters = append(d.Parameters, docsParameter{
			Name: p.Name, In: p.In, Required: p.Required, Type: typeOf(p.Schema), Description: p.Description,
		})
	}
	if op.RequestBody != nil {
		d.Bodies = append(d.Bodies, docsBodies(document, "request", op.RequestBody.Content)...)
		d.HasBody = true
		d.Body = docexample.Body(op.RequestBody.Content)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		if op.Responses[status].Ref != "" {
			continue // a problem, which every operation has
		}
		d.Bodies = append(d.Bodies, docsBodies(document, status, op.Responses[status].Content)...)
		if text := docexample.Body(op.Responses[status].Content); text != "" {
			d.Answer = status + "\n" + text
		}
	}
	d.Curl, d.Example = docexample.Curl(op), docexample.Path(op)
	return d
}

func docsBodies(document *huma.OpenAPI, title string, content map[string]*huma.MediaType) []docsBody {
	var bodies []docsBody
	for _, contentType := range slices.Sorted(maps.Keys(content)) {
		var text string
		if schema := content[contentType].Schema; schema != nil {
			text = outline(document, schema, "", 0)
		}
		bodies = append(bodies, docsBody{title + " " + contentType, text})
	}
	return bodies
}

// maxOutlineDepth bounds the outline of types that refer to themselves.
const maxOutlineDepth = 6

// outline returns a schema in the form of the JSON that it describes, with a type in
// place of each value.
func outline(document *huma.OpenAPI, schema *huma.Schema, indent string, depth int) string {
	if schema.Ref != "" {
		schema = document.Components.Schemas.SchemaFromRef(schema.Ref)
	}
	switch {
	case depth > maxOutlineDepth:
		return "…"
	case schema.Type == huma.TypeArray && schema.Items != nil:
		return "[" + outline(document, schema.Items, indent, depth+1) + ", …]"
	case schema.Type == huma.TypeObject && len(schema.Properties) > 0:
		var b strings.Builder
		b.WriteString("{\n")
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			optional := "?"
			if slices.Contains(schema.Required, name) {
				optional = ""
			}
			fmt.Fprintf(&b, "%s  %q%s: %s", indent, name, optional, outline(document, property, indent+"  ", depth+1))
			if property.Description != "" {
				b.WriteString("  // " + property.Description)
			}
			b.WriteByte('\n')
		}
		b.WriteString(indent + "}")
		return b.String()
	}
	return typeOf(schema)
}

// typeOf describes the type of a value in a few words.
func typeOf(schema *huma.Schema) string {
	if schema == nil {
		return ""
	}
	words := []string{schema.Type}
	switch {
	case schema.Type == "":
		words[0] = "any JSON"
	case schema.Type == huma.TypeObject:
		words[0] = "{…}"
	}
	if schema.ContentEncoding != "" {
		words = append(words, schema.ContentEncoding)
	}
	if schema.Format != "" {
		words = append(words, schema.Format)
	}
	if schema.Pattern != "" {
		words = append(words, schema.Pattern)
	}
	if len(schema.Enum) > 0 {
		if raw, err := json.Marshal(schema.Enum); err == nil {
			words = append(words, string(raw))
		}
	}
	return strings.Join(words, " ")
}
