package web

import "testing"

// A host with an empty label names no function, and is no host of the API either: a proxy may take
// it for that of a function.
func TestHostsWithEmptyLabels(t *testing.T) {
	t.Parallel()
	const own = "hello--default--t-acme01.apps.localtest"
	a := New(nil, nil, nil, Config{FunctionDomain: "apps.localtest"})
	for host, want := range map[string]struct {
		root    string
		claimed bool
	}{
		own:                              {"/v1/web/t_acme01/default/hello/prod", true},
		own + ".":                        {"/v1/web/t_acme01/default/hello/prod", true},
		own + "..":                       {"", true},
		own + "..:8080":                  {"", true},
		own + "...":                      {"", true},
		"." + own:                        {"", true},
		"hello..apps.localtest":          {"", true},
		"hello--default.apps..localtest": {"", true},
		"apps.localtest..":               {"", true},
		"localhost..":                    {"", true},
		"apps.localtest":                 {"", false},
		"localhost.":                     {"", false},
		"[::1]:8080":                     {"", false},
		"":                               {"", false},
	} {
		if root, claimed := a.hostRoot(host); root != want.root || claimed != want.claimed {
			t.Errorf("hostRoot(%q) = %q, %t, want %q, %t", host, root, claimed, want.root, want.claimed)
		}
	}
}
