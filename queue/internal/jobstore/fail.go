package jobstore

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codesous/sous/api"
)

// Shorten shortens s to at most n bytes of whole characters, and replaces invalid ones, each run
// of them by U+FFFD. Text of a worker may be binary, which JSON cannot hold.
func Shorten(s string, n int) string {
	if len(s) > n {
		s = s[:n]
		for len(s) > 0 && !utf8.ValidString(s[len(s)-min(len(s), utf8.UTFMax):]) {
			s = s[:len(s)-1]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// CheckFail checks the limits of a fail. CodeInvalid.
func CheckFail(f *api.JobFail) error {
	for path, ms := range map[string]*int64{"retry_after_ms": f.RetryAfterMS, "snooze_ms": f.SnoozeMS} {
		if ms != nil && (*ms < 0 || *ms > api.MaxDelayMS) {
			return api.InvalidRange(path, 0, api.MaxDelayMS)
		}
	}
	if f.ProviderError != nil {
		if field, rule := f.ProviderError.Check(); rule != "" {
			return api.InvalidField(field, rule)
		}
	}
	if f.Fatal && (f.RetryAfterMS != nil || f.SnoozeMS != nil) || f.RetryAfterMS != nil && f.SnoozeMS != nil {
		return api.InvalidField("fatal", "cannot be combined with retry_after_ms or snooze_ms, nor these with each other")
	}
	return nil
}

// Failed returns the move of a job whose attempt failed at now, a Unix time in milliseconds. Its texts
// are cut to most bytes each. random is a number in [0, 1), for the jitter.
func (r *Record) Failed(f *api.JobFail, most int, now int64, random float64) *Move {
	m := &Move{Record: r, To: r.Run.Settle(SettledFail)}
	if f.SnoozeMS != nil {
		m.To.Attempt--
		m.To = m.To.To(api.JobRetrying, now+*f.SnoozeMS)
		if f.ProviderError != nil {
			m.Field, m.Value = FieldRouting, f.ProviderError.Provider
		}
		return m
	}
	m.Failure = &api.JobError{
		Attempt: r.Run.Attempt, AtMS: now,
		Error: Shorten(f.Error, min(api.MaxJobErrorBytes, most)), Stack: Shorten(f.Stack, min(api.MaxJobStackBytes, most)),
	}
	options := r.Spec.WithDefaults()
	reason := ""
	switch {
	case f.Fatal:
		reason = api.DeadFatal
	case r.Spec.ExpireAtMS > 0 && r.Spec.ExpireAtMS <= now:
		reason = api.DeadExpired
	case r.Run.Attempt >= options.MaxAttempts:
		reason = api.DeadAttempts
	}
	if reason != "" {
		return m.Dead(reason, now)
	}
	delay := options.Delay(r.Run.Attempt, random)
	if f.RetryAfterMS != nil {
		delay = time.Duration(*f.RetryAfterMS) * time.Millisecond
	}
	m.To = m.To.To(api.JobRetrying, now+delay.Milliseconds())
	return m
}
