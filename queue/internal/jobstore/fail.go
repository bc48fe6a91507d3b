package jobstore

import (
	"strings"
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
	if f.Fatal && (f.RetryAfterMS != nil || f.SnoozeMS != nil) || f.RetryAfterMS != nil && f.SnoozeMS != nil {
		return api.InvalidField("fatal", "cannot be combined with retry_after_ms or snooze_ms, nor these with each other")
	}
	return nil
}
