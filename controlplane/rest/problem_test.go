package rest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/httpstatus"
)

// codes are all that api/errors.go declares.
func codes(t *testing.T) []api.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/errors.go", nil, 0)
	if err != nil {
		t.Fatalf("ParseFile: %v", err)
	}
	var found []api.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatalf("Unquote: %v", err)
			}
			found = append(found, api.Code(value))
		}
		return true
	})
	if len(found) < 40 {
		t.Fatalf("found %d codes, want at least 40 found", len(found))
	}
	return found
}

// TestEveryCodeIsDocumented holds docs/errors.md to the codes and their statuses.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	statuses := maps.Collect(httpstatus.All())
	for _, code := range codes(t) {
		row := fmt.Sprintf("\n| `%s` | ", code)
		if status, answered := statuses[code]; answered {
			row += strconv.Itoa(status) + " | "
		}
		if !strings.Contains(string(raw), row) {
			t.Errorf("docs/errors.md: got no row %q, want it", row)
		}
	}
}

// TestFamiliesHaveTheirStatus holds the map to what docs/errors.md promises.
func TestFamiliesHaveTheirStatus(t *testing.T) {
	t.Parallel()
	for code, status := range httpstatus.All() {
		name := string(code)
		allowed := []int{status}
		switch {
		case strings.HasPrefix(name, "CS_AUTHN_"):
			allowed = []int{401}
		case strings.HasPrefix(name, "CS_AUTHZ_"):
			allowed = []int{403}
		case strings.HasPrefix(name, "CS_VALIDATION_"):
			allowed = []int{400, 422}
		case strings.HasPrefix(name, "CS_RUNTIME_"):
			allowed = []int{502, 504}
		case strings.HasSuffix(name, "_NOT_FOUND"):
			allowed = []int{404}
		case strings.HasSuffix(name, "_CONFLICT"), strings.HasSuffix(name, "_EXISTS"):
			allowed = []int{409}
		case strings.HasSuffix(name, "_LIMIT"):
			allowed = []int{413, 414, 429, 431}
		}
		ok := false
		for _, a := range allowed {
			ok = ok || a == status
		}
		if !ok {
			t.Errorf("status of %s: got %d, want one of %v", code, status, allowed)
		}
	}
}
