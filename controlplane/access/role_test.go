package access

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
)

// Unknown stands for a caller that is not known: it must not be able to do anything.
func TestUnknownEntersNothing(t *testing.T) {
	t.Parallel()
	c := Unknown()
	if c.Enters("t_abc123") || c.EntersNamespace("payments") || c.Need(FunctionRead) == nil || c.Access() == api.AccessUnrestricted {
		t.Errorf("Unknown() = %+v, want a caller that may do nothing", c)
	}
}

var roleRow = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| (`.+`) \\|$")

// docs/access.md says what each role grants.
func TestRolesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Roles\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string][]Action{}
	for _, row := range roleRow.FindAllStringSubmatch(section, -1) {
		for action := range strings.SplitSeq(row[2], ", ") {
			documented[row[1]] = append(documented[row[1]], Action(strings.Trim(action, "`")))
		}
	}
	sorted := func(m map[string][]Action) map[string][]Action {
		out := map[string][]Action{}
		for role, actions := range m {
			out[role] = slices.Sorted(slices.Values(actions))
		}
		return out
	}
	if diff := cmp.Diff(sorted(roles), sorted(documented)); diff != "" {
		t.Errorf("actions of the roles differ from docs/access.md (-want +got): %s", diff)
	}
}
