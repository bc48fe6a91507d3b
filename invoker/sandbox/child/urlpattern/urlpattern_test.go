package urlpattern

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/invoker/sandbox/child/regex"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	p, err := New(Input{Text: "https://*.example.com/users/:id/:page?"}, Options{})
	if err != nil {
		t.Fatalf("New: %v, want no error", err)
	}
	m, err := p.Match(Input{Text: "/users/7", Base: "https://a.example.com", HasBase: true}, nil)
	if err != nil || m == nil {
		t.Fatalf("Match = %v, %v, want a match", m, err)
	}
	want := ComponentMatch{"/users/7", []Group{{"id", "7", true}, {"page", "", false}}}
	if diff := cmp.Diff(want, m[Pathname]); diff != "" {
		t.Errorf("the match of the pathname differs (-want +got):\n%s", diff)
	}
	if got, want := p.Component(Hostname), "*.example.com"; got != want {
		t.Errorf("Component(Hostname) = %q, want %q", got, want)
	}
	for _, text := range []string{"https://example.com/users/7", "/users/7", "https://[/"} {
		if m, err := p.Match(Input{Text: text}, nil); m != nil || err != nil {
			t.Errorf("Match(%q) = %v, %v, want no match", text, m, err)
		}
	}
}

// TestStop: a stopped call returns neither a pattern nor a match.
func TestStop(t *testing.T) {
	t.Parallel()
	stop := func() bool { return true }
	endless := "((?:" + strings.Repeat("(?:|)", 200) + "h)x|none)"
	for _, in := range []Input{{Init: Init{Protocol: endless}}, {Text: endless + "://a"}} {
		p, err := New(in, Options{Stop: stop})
		if p != nil || !errors.Is(err, regex.ErrStopped) {
			t.Errorf("New(%.20q) with stop = %v, %v, want nil, %v", in.Text, p, err, regex.ErrStopped)
		}
	}
	p, err := New(Input{Init: Init{Hash: "((?:a|a)*b)"}}, Options{})
	if err != nil {
		t.Fatalf("New: %v, want no error", err)
	}
	m, err := p.Match(Input{Init: Init{Hash: strings.Repeat("a", 100)}}, stop)
	if m != nil || !errors.Is(err, regex.ErrStopped) {
		t.Errorf("Match with stop = %v, %v, want nil, %v", m, err, regex.ErrStopped)
	}
}
