package cli

import "testing"

func TestBrowserNeedsADisplay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		env     map[string]string
		system  string
		display bool
		program string
	}{
		{"linux", nil, "linux", false, "xdg-open"},
		{"x11", map[string]string{"DISPLAY": ":0"}, "linux", true, "xdg-open"},
		{"wayland", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, "linux", true, "xdg-open"},
		{"named", map[string]string{"BROWSER": "w3m"}, "linux", true, "w3m"},
		{"mac", nil, "darwin", true, "open"},
		{"mac by ssh", map[string]string{"SSH_CONNECTION": "1"}, "darwin", false, "open"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			getenv := func(name string) string { return test.env[name] }
			if got := hasDisplay(getenv, test.system); got != test.display {
				t.Errorf("hasDisplay: got %v, want %v", got, test.display)
			}
			if got := browser(getenv, test.system); got != test.program {
				t.Errorf("browser: got %q, want %q", got, test.program)
			}
		})
	}
}
