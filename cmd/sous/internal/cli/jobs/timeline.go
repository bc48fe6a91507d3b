package jobs

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// attemptsText returns the attempts of a job as a table behind an empty line, "" for none. Their
// errors follow the job.
func attemptsText(attempts []api.JobAttempt) string {
	if len(attempts) == 0 {
		return ""
	}
	rows := make([][]string, len(attempts))
	for i, a := range attempts {
		rows[i] = []string{
			strconv.Itoa(a.Attempt), a.Outcome, command.TimeText(a.StartedAtMS), command.TimeText(a.EndedAtMS), lengthText(a.StartedAtMS, a.EndedAtMS), cmp.Or(a.WorkerID, "-"), cmp.Or(a.Host, "-"),
		}
	}
	return "\n" + command.Table([]string{"ATTEMPT", "OUTCOME", "STARTED", "ENDED", "TOOK", "WORKER", "HOST"}, rows)
}

// lengthText returns the time between two moments, "-" unless both are known.
func lengthText(startMS, endMS int64) string {
	if startMS == 0 || endMS == 0 {
		return "-"
	}
	return api.DurationText(max(0, endMS-startMS))
}

// timelineText returns the timeline of a job as a table behind an empty line, and the reasons why
// changes may be missing. Times have milliseconds: several changes may fall into one second.
func timelineText(t *event.Timeline) string {
	if t == nil { // a server of an earlier release
		return "\nno timeline: the server has none\n"
	}
	rows := make([][]string, len(t.Entries))
	for i := range t.Entries {
		e := &t.Entries[i]
		attempt := "-"
		if e.Attempt > 0 {
			attempt = strconv.Itoa(e.Attempt)
		}
		what, _, _ := strings.Cut(strings.TrimPrefix(e.Reason+": "+e.Error, ": "), "\n")
		rows[i] = []string{
			time.UnixMilli(e.AtMS).Format("2006-01-02 15:04:05.000"), strings.TrimPrefix(e.Type, "job."), attempt, e.Source,
			cmp.Or(e.WorkerID, "-"), cmp.Or(e.Host, "-"), cmp.Or(e.Actor, "-"), strings.TrimSuffix(what, ": "),
		}
	}
	var b strings.Builder
	b.WriteString("\n" + command.Table([]string{"TIME", "CHANGE", "ATTEMPT", "SOURCE", "WORKER", "HOST", "ACTOR", "REASON"}, rows))
	for _, m := range t.Missing {
		b.WriteString("changes may be missing: " + m.Detail + "\n")
	}
	return b.String()
}
