package controlplane

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// A route that nobody thought of is closed, to administrators too.
func TestARouteWithoutARuleIsClosed(t *testing.T) {
	t.Parallel()
	s := &Server{auth: &authenticator{mode: AuthOff, local: localCaller(), results: newAuthentications()}, log: zap.NewNop()}
	router := chi.NewRouter()
	router.With(s.authorize).Get("/v1/forgotten", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/forgotten", nil))
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), string(api.CodeAuthzDenied)) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A rule that says nothing of namespaces is for the whole tenant.
func TestTheZeroExtentIsTheWholeTenant(t *testing.T) {
	t.Parallel()
	var r rule
	if r.extent != wholeTenant {
		t.Errorf("it is %d", r.extent)
	}
	for route, r := range rules {
		if named := strings.Contains(route, "{namespace}"); named != (r.extent == pathNamespace) {
			t.Errorf("%s: extent %d", route, r.extent)
		}
	}
}

// Nobody is somebody only by mistake: such a caller must get nowhere.
func TestNobodyEntersNothing(t *testing.T) {
	t.Parallel()
	c := callerOf(t.Context())
	if c.enters("t_abc123") || c.entersNamespace("payments") || c.need(actionFunctionRead) == nil || c.access() == api.AccessUnrestricted {
		t.Errorf("%+v", c)
	}
}

var roleRow = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| (`.+`) \\|$")

// docs/access.md says what each role grants.
func TestRolesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/access.md")
	if err != nil {
		t.Fatal(err)
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
		t.Errorf("roles and docs/access.md (- is not documented, + not granted): %s", diff)
	}
}

var actionRow = regexp.MustCompile("(?m)^\\| `(cs:[a-z:]+)` \\| (.+) \\|$")

// docs/access.md says which routes need which action, as docs/api.md writes them.
func TestActionsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	short := strings.NewReplacer(
		pathFunction, "F", pathNamespaces+"/{namespace}", "N", pathTenant, "T",
	)
	want := map[string][]string{}
	for route, r := range rules {
		if r.action != actionPublic && r.action != actionAnyKey && r.action != actionRunner {
			want[string(r.action)] = append(want[string(r.action)], "`"+short.Replace(route)+"`")
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
		t.Errorf("rules and docs/access.md (- is not documented, + is not so): %s", diff)
	}
}
