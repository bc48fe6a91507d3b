package controlplane_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// A route is open to keys of its path's namespace if, and only if, its path has one.
func TestPathsWithANamespaceAreOpenToItsKeys(t *testing.T) {
	t.Parallel()
	for _, route := range start(t).control.Routes() {
		if named := strings.Contains(route.Path, "{namespace}"); named != (route.Extent == rest.PathNamespaceOnly) {
			t.Errorf("%s %s: got extent %d with a namespace in the path: %v, want them to agree", route.Method, route.Path, route.Extent, named)
		}
	}
}

var actionRow = regexp.MustCompile("(?m)^\\| `(cs:[a-z:]+)` \\| (.+) \\|$")

// docs/access.md says which routes need which action, as docs/api.md writes them.
func TestActionsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/access.md")
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	short := strings.NewReplacer(
		rest.PathNamespace+"/functions/{function}", "F", rest.PathNamespace, "N", rest.PathTenant, "T",
	)
	want := map[string][]string{}
	for _, route := range start(t).control.Routes() {
		if route.Action != access.Public && route.Action != access.AnyKey && route.Action != access.Runner {
			want[string(route.Action)] = append(want[string(route.Action)], "`"+short.Replace(route.Method+" "+route.Path)+"`")
		}
	}
	var lines []string
	for action, routes := range want {
		slices.Sort(routes)
		lines = append(lines, fmt.Sprintf("%s: %s", action, strings.Join(routes, ", ")))
	}
	var documented []string
	for _, row := range actionRow.FindAllStringSubmatch(string(page), -1) {
		routes := strings.Split(row[2], ", ")
		slices.Sort(routes)
		documented = append(documented, fmt.Sprintf("%s: %s", row[1], strings.Join(routes, ", ")))
	}
	slices.Sort(lines)
	slices.Sort(documented)
	if diff := cmp.Diff(lines, documented); diff != "" {
		t.Errorf("rules differ from docs/access.md (-want +got): %s", diff)
	}
}
