package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/storage"
)

func TestRetentionSettings(t *testing.T) {
	t.Parallel()
	got, err := parseRetention("job-retention", []string{"36h", " t_acme01 = 90d", "t_other1=1h"})
	want := storage.Retention{Default: 36 * time.Hour, Tenants: map[string]time.Duration{"t_acme01": 90 * 24 * time.Hour, "t_other1": time.Hour}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("parseRetention = %v (-want +got):\n%s", err, diff)
	}
	if got, err := parseRetention("job-retention", []string{"t_acme01=2h"}); err != nil || got.Default != 0 {
		t.Errorf("a list without a duration for all tenants = %+v, %v, want the default 0", got, err)
	}
	for _, list := range [][]string{
		{"7"}, {"d"}, {"-7d"}, {"59m"}, {"366d"}, {"9999999999d"}, {"7d", "8d"}, {"acme=7d"}, {"t_acme01="}, {"=7d"},
		{"t_acme01=7d", "t_acme01=8d"}, {"t_acme01=1s"}, {""},
	} {
		if got, err := parseRetention("job-retention", list); err == nil {
			t.Errorf("parseRetention(%q) = %+v, want an error", list, got)
		}
	}
}
