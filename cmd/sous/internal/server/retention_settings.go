package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// retentionSettings are how long ended activations and jobs, and events of the audit, are kept. Each is a list of at most
// one duration, which applies to all tenants, and of TENANT=DURATION.
type retentionSettings struct {
	Activations []string `koanf:"activation-retention"`
	Jobs        []string `koanf:"job-retention"`
	Audit       []string `koanf:"audit-retention"`
}

// registerRetention adds the settings of retention to flags.
func registerRetention(flags *pflag.FlagSet) {
	const form = " are kept, from 1h to 365d: a duration for all tenants, and TENANT=DURATION for single ones, comma-separated"
	flags.StringSlice("activation-retention", []string{"7d"}, "how long ended activations, their results and logs"+form)
	flags.StringSlice("job-retention", []string{"7d"}, "how long ended jobs"+form)
	flags.StringSlice("audit-retention", []string{"90d"}, "how long events of the audit"+form)
}

// validate refuses lists that parse does not understand.
func (s *retentionSettings) validate() error {
	if _, err := parseRetention("activation-retention", s.Activations); err != nil {
		return err
	}
	if _, err := parseRetention("job-retention", s.Jobs); err != nil {
		return err
	}
	_, err := parseRetention("audit-retention", s.Audit)
	return err
}

// parseRetention reads the list of a setting. A list without a duration for all tenants leaves
// Default at 0.
func parseRetention(setting string, list []string) (storage.Retention, error) {
	out := storage.Retention{Tenants: map[string]time.Duration{}}
	for _, entry := range list {
		tenant, text, single := strings.Cut(entry, "=")
		if !single {
			tenant, text = "", entry
		}
		keep, err := parseDays(strings.TrimSpace(text))
		switch {
		case err != nil || keep.Milliseconds() < api.MinRetentionMS || keep.Milliseconds() > api.MaxRetentionMS:
			return out, fmt.Errorf("%s %q: want a duration from 1h to 365d, such as 36h or 7d", setting, entry)
		case !single && out.Default > 0:
			return out, fmt.Errorf("%s %q: a second duration for all tenants; a single tenant's is TENANT=DURATION", setting, entry)
		case !single:
			out.Default = keep
			continue
		}
		tenant = strings.TrimSpace(tenant)
		if err := api.ValidateTenant(tenant); err != nil {
			return out, fmt.Errorf("%s %q: %w", setting, entry, err)
		}
		if _, twice := out.Tenants[tenant]; twice {
			return out, fmt.Errorf("%s %q: the tenant is named twice", setting, entry)
		}
		out.Tenants[tenant] = keep
	}
	return out, nil
}

// parseDays reads a duration as time.ParseDuration does, and also a number of days: "7d".
func parseDays(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		hours, err := time.ParseDuration(days + "h")
		if hours < 0 || hours > 1000*time.Hour {
			return 0, fmt.Errorf("%s is out of range", text)
		}
		return 24 * hours, err
	}
	return time.ParseDuration(text)
}
