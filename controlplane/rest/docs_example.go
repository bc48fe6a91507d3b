package rest

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

// exampleOf returns the example of a body, indented; "" if it has none.
func exampleOf(content map[string]*huma.MediaType) string {
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

// examplePath returns the path of op with the values of its examples, and the query.
func examplePath(op *huma.Operation) string {
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

// curl returns the command that sends the example of op to $SOUS_URL.
func curl(op *huma.Operation) string {
	var command strings.Builder
	fmt.Fprintf(&command, "curl -X %s \"$SOUS_URL%s\"", op.Method, examplePath(op))
	if len(op.Security) > 0 {
		command.WriteString(" \\\n  -H \"Authorization: Bearer $SOUS_KEY\"")
	}
	if op.RequestBody == nil {
		return command.String()
	}
	if text := exampleOf(op.RequestBody.Content); text != "" {
		quoted := strings.ReplaceAll(text, "'", `'\''`)
		fmt.Fprintf(&command, " \\\n  -H \"Content-Type: application/json\" \\\n  -d '%s'", quoted)
	}
	return command.String()
}
