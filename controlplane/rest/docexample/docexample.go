// Package docexample renders the examples of an OpenAPI document for its page: bodies, paths, and
// commands of curl.
package docexample

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Body returns the example of a body, indented; "" if it has none.
func Body(content map[string]*huma.MediaType) string {
	for _, contentType := range slices.Sorted(maps.Keys(content)) {
		raw, ok := content[contentType].Example.(json.RawMessage)
		if !ok {
			continue
		}
		var indented bytes.Buffer
		if json.Indent(&indented, raw, "", "  ") != nil {
			return string(raw)
		}
		return indented.String()
	}
	return ""
}

// Path returns the path of op with the values of its examples, and the query.
func Path(op *huma.Operation) string {
	path, query := op.Path, url.Values{}
	for _, p := range op.Parameters {
		if p.Example == nil {
			continue
		}
		value := fmt.Sprint(p.Example)
		if raw, ok := p.Example.(json.RawMessage); ok {
			value = string(raw)
		}
		switch p.In {
		case "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case "query":
			query.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// Curl returns the command that sends the example of op to $SOUS_URL.
func Curl(op *huma.Operation) string {
	var command strings.Builder
	fmt.Fprintf(&command, "curl -X %s \"$SOUS_URL%s\"", op.Method, Path(op))
	if len(op.Security) > 0 {
		command.WriteString(" \\\n  -H \"Authorization: Bearer $SOUS_KEY\"")
	}
	if op.RequestBody == nil {
		return command.String()
	}
	if text := Body(op.RequestBody.Content); text != "" {
		quoted := strings.ReplaceAll(text, "'", `'\''`)
		fmt.Fprintf(&command, " \\\n  -H \"Content-Type: application/json\" \\\n  -d '%s'", quoted)
	}
	return command.String()
}
