package activations

import (
	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

// change returns the event of a write of a: that the activation began or ended; nil if its version
// records none, and of an activation in its queue, whose job has events.
func (r *Repository) change(a *Record) *event.Change {
	out := event.Change{Of: event.KindActivations, ID: a.ActivationID, Data: event.Data{
		Namespace: a.Namespace, Function: a.Function, Version: a.Ref.Version, Alias: a.Ref.Alias, JobID: a.JobID, Attempt: a.Attempt,
	}}
	switch {
	case a.Events != "" && a.Status.Terminal():
		out.Type, out.AtMS = event.ActivationEnded, a.EndMS
		out.Data.Status, out.Data.Duration = string(a.Status), a.DurationMS
		if a.Error != nil {
			out.Data.Reason, out.Data.Error = string(a.Error.Type), event.Shorten(a.Error.Message)
		}
	case a.Events == event.RecordAll && a.Status == api.StatusRunning:
		out.Type, out.AtMS = event.ActivationStarted, r.s.NowMS()
	default:
		return nil
	}
	return &out
}

// changeText returns a change as scripts read it, "" for nil.
func changeText(c *event.Change) string {
	if c == nil {
		return ""
	}
	return c.Text()
}
