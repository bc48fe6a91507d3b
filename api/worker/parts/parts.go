// Package parts splits the jobs that a worker settles into calls of bounded size.
package parts

import (
	"iter"

	"github.com/codesous/sous/api"
)

// overhead is the size of a job in a call without its variable fields, in bytes.
const overhead = 300

// Ack returns the size of the variable fields of an ack, in bytes.
func Ack(a *api.JobAck) int { return len(a.Result) + len(a.Checkpoint) + len(a.Hold) }

// Fail returns the size of the texts of a job that failed, if every byte is escaped.
func Fail(f *api.JobFail) int { return 6 * (len(f.Error) + len(f.Stack)) }

// Heartbeat returns the largest size of the variable fields of a heartbeat.
func Heartbeat(h *api.JobHeartbeat) int { return len(h.Checkpoint) + api.MaxProgressMessage }

// Cut returns the jobs with texts as long as the server keeps them.
func Cut(fails []api.JobFail) []api.JobFail {
	cut := make([]api.JobFail, len(fails))
	for i, f := range fails {
		f.Error, f.Stack = api.TruncateText(f.Error, api.MaxJobErrorBytes), api.TruncateText(f.Stack, api.MaxJobStackBytes)
		cut[i] = f
	}
	return cut
}

// Of returns the jobs in parts of at most api.MaxSettleJobs jobs and about most bytes. A job that
// exceeds the bound by itself has a part of its own, which the server may refuse.
func Of[T any](jobs []T, most int, size func(*T) int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(jobs) > 0 {
			n, bytes := 0, 0
			for n < len(jobs) && n < api.MaxSettleJobs {
				more := overhead + size(&jobs[n])
				if n > 0 && bytes+more > most {
					break
				}
				n, bytes = n+1, bytes+more
			}
			if !yield(jobs[:n]) {
				return
			}
			jobs = jobs[n:]
		}
	}
}
