package examine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A finding that all servers share appears once, others with their server; checks stay
// in their order.
func TestMergeFindings(t *testing.T) {
	t.Parallel()
	version := Finding{Name: CheckVersion, Level: LevelOK, Text: "redis 7.0.15"}
	older := Finding{Name: CheckVersion, Level: LevelFailure, Text: "redis 6.2.1", Remedy: "upgrade"}
	eviction := Finding{Name: CheckEviction, Level: LevelOK, Text: "noeviction"}
	at := func(f Finding, addr string) Finding { f.Server = addr; return f }
	for name, test := range map[string]struct {
		servers []serverReport
		want    []Finding
	}{
		"one":  {[]serverReport{{addr: "", findings: []Finding{version, eviction}}}, []Finding{version, eviction}},
		"same": {[]serverReport{{addr: "a", findings: []Finding{eviction, version}}, {addr: "b", findings: []Finding{eviction, version}}}, []Finding{version, eviction}},
		"one differs": {
			[]serverReport{
				{addr: "a", findings: []Finding{version, eviction}},
				{addr: "b", findings: []Finding{older, eviction}},
				{addr: "c", findings: []Finding{version, eviction}},
			},
			[]Finding{at(version, "a"), at(older, "b"), at(version, "c"), eviction},
		},
	} {
		if diff := cmp.Diff(test.want, merge(test.servers)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
