package command

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
)

func TestMessagesNameFlags(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		err  *api.Error
		want string
	}{
		{nil, api.InvalidRange("max_attempts", 1, 1000), "--max-attempts must be from 1 to 1,000"},
		{nil, api.InvalidRange("jobs[0].max_attempts", 1, 1000), "--max-attempts must be from 1 to 1,000"},
		{[]string{"--options={}"}, api.InvalidRange("max_attempts", 1, 1000), "max_attempts must be from 1 to 1,000"},
		{[]string{"--options={}", "--max-attempts=0"}, api.InvalidRange("max_attempts", 1, 1000), "--max-attempts must be from 1 to 1,000"},
		{nil, api.InvalidRange("every_seconds", 1, 86400), "--every must be from 1 s to 1 d"},
		{nil, api.InvalidField("every_seconds", "must be set, or cron must be"), "--every must be set, or --cron must be"},
		{nil, api.InvalidField("functions[2]", "must be a name"), "--function must be a name"},
		{nil, api.InvalidField("functions.A", "must be a name"), "--function A must be a name"},
		{[]string{"--config={}"}, api.InvalidField("config.timeout_ms", "must be less"), "--config timeout_ms must be less"},
		{nil, api.InvalidField("other_field", "must be a name"), "other_field must be a name"},
		{nil, api.InvalidField("tenant", "must be a name"), "tenant must be a name"},
		{[]string{"--tenant=T"}, api.InvalidField("tenant", "must be a name"), "--tenant must be a name"},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, name := range []string{"options", "config", "cron", "function", "tenant"} {
			flags.String(name, "", "")
		}
		flags.Int("max-attempts", 0, "")
		flags.Duration("every", time.Second, "")
		if err := flags.Parse(tc.args); err != nil {
			t.Fatalf("Parse(%v): %v", tc.args, err)
		}
		f := describe(tc.err)
		f.nameFlags(flags)
		if want := "error: CS_VALIDATION_FAILED: " + tc.want + "\n"; f.text(false) != want {
			t.Errorf("%v %s: got %q, want %q", tc.args, tc.err, f.text(false), want)
		}
	}
}
