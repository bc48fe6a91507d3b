package scheduler

import "testing"

// FuzzCron parses expressions of anything: one that is accepted has a next tick, which is after
// the moment that it follows.
func FuzzCron(f *testing.F) {
	for _, seed := range [][2]string{
		{"*/5 * * * *", ""}, {"0 0 29 2 *", "Europe/Berlin"}, {"30 2 * * SUN", "America/New_York"}, {"@daily", "UTC"},
		{"0 0 31 4 *", ""}, {"59-1 * * * *", ""}, {"* * * * */0", ""}, {"1/99999999999 * * * *", ""}, {"@every 1ns", ""}, {"TZ=UTC * * * * *", ""},
		{"* * * * *", "../../etc/passwd"}, {"* * * * *", "Local"},
	} {
		f.Add(seed[0], seed[1], int64(1700000000000))
	}
	f.Fuzz(func(t *testing.T, expression, zone string, afterMS int64) {
		timing, err := newCronTiming(expression, zone)
		if err != nil {
			return
		}
		const year3000 = 32503680000000
		if afterMS < 0 || afterMS > year3000 {
			return
		}
		if next := timing.next(afterMS); next <= afterMS {
			t.Errorf("cron %q in %q: next(%d) = %d, want a later moment", expression, zone, afterMS, next)
		}
	})
}
