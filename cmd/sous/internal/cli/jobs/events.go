package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// eventsSince is the age of the oldest events that sous events lists without --since.
const eventsSince = time.Hour

// errShown ends a stream after --limit events.
var errShown = errors.New("all events are shown")

// eventsFlags are the flags of sous events.
type eventsFlags struct {
	selection   client.EventSelection
	since       time.Duration
	all, follow bool
	limit       *uint
}

// eventsCommand returns sous events.
func (a commands) eventsCommand() *cobra.Command {
	var f eventsFlags
	cmd := &cobra.Command{
		Use: "events", Short: "Print what happened to jobs, functions, schedules, batches and tasks, oldest first",
		Long: `Print the events of the namespace, oldest first: the changes of functions, versions, aliases,
schedules, batches and tasks, the ends of jobs, and all changes of jobs whose queue records all
events. They are kept for 24 hours. With --follow the events to come are printed, until
interrupted.`,
		Example: `  sous events --type job.dead --since 24h
  sous events --function hello --type 'version.*' --type 'alias.*'
  sous events --all-namespaces --type 'job.c*' --follow
  sous events --queue emails --since 10m --follow -o json`,
		Args: cobra.NoArgs,
	}
	a.RegisterRemote(cmd.Flags())
	f.limit = command.RegisterLimit(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.selection.Types, "type", nil, "only this type, such as job.dead, or job.* for all that begin so; can be repeated")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(append(slices.Clone(event.Types), "alias.*", "batch.*", "function.*", "job.*", "schedule.*", "task.*", "version.*", "webhook.*"), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	flags.StringVar(&f.selection.Queue, "queue", "", "only events of the jobs of this queue, and of what makes some")
	flags.StringVar(&f.selection.Function, "function", "", "only events of this function, its versions, aliases and jobs, and of the schedules that call it")
	flags.DurationVar(&f.since, "since", eventsSince, "only events within this time before now; with --follow none of them unless set")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "events of all namespaces of the tenant")
	flags.BoolVarP(&f.follow, "follow", "f", false, "print events as they happen, until interrupted or --limit, if set, is reached")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		if err := f.selection.Validate(); err != nil {
			return err
		}
		if !f.all {
			f.selection.Namespace = t.NamespaceName
		}
		if !f.follow || cmd.Flags().Changed("since") {
			f.selection.Since = time.Now().Add(-f.since)
		}
		if !f.follow {
			return a.listEvents(cmd.Context(), t, &f)
		}
		if !cmd.Flags().Changed("limit") {
			*f.limit = 0
		}
		return command.Interrupted(cmd.Context(), a.followEvents(cmd.Context(), t, &f))
	}
	return cmd
}

// listEvents prints the first --limit events as a table.
func (a commands) listEvents(ctx context.Context, t *command.Target, f *eventsFlags) error {
	items, more, err := command.Collect(t.Tenant.AllEvents(ctx, f.selection), *f.limit)
	if err != nil {
		return err
	}
	a.NoteMore(more)
	return command.PrintList(a.App, items, []string{"TIME", "TYPE", "QUEUE", "SUBJECT", "ATTEMPT", "WORKER", "BY", "DETAIL"}, func(e event.Event) []string {
		return []string{
			eventTime(&e), e.Type, cmp.Or(eventQueue(&e), "-"), eventSubject(&e), eventAttempt(&e), cmp.Or(e.Data.WorkerID, "-"), cmp.Or(e.Actor, "-"), cmp.Or(eventDetail(&e), "-"),
		}
	})
}

// followEvents prints events as they happen, one a line.
func (a commands) followEvents(ctx context.Context, t *command.Target, f *eventsFlags) error {
	a.Note("waiting for events; Ctrl-C ends it")
	shown := uint(0)
	err := t.Tenant.FollowEvents(ctx, f.selection, func(e event.Event) error {
		if err := a.PrintLine(e, eventLine(&e)); err != nil {
			return err
		}
		shown++
		if shown == *f.limit {
			return errShown
		}
		return nil
	}, func() error {
		a.Note("events may be missing here: they are no longer kept")
		return nil
	})
	if errors.Is(err, errShown) {
		return nil
	}
	return err
}

// eventLine returns an event as a line.
func eventLine(e *event.Event) string {
	text := eventTime(e) + "  " + e.Type
	if queue := eventQueue(e); queue != "" {
		text += "  " + queue
	}
	text += "  " + eventSubject(e)
	if e.Data.Attempt > 0 {
		text += "  attempt " + strconv.Itoa(e.Data.Attempt)
	}
	if e.Data.WorkerID != "" {
		text += "  worker " + e.Data.WorkerID
	}
	if e.Actor != "" {
		text += "  by " + e.Actor
	}
	if detail := eventDetail(e); detail != "" {
		text += "  " + detail
	}
	return command.Printable(text)
}

// eventTime returns the local time of an event, or its text if it is none.
func eventTime(e *event.Event) string {
	at, err := time.Parse(time.RFC3339, e.Time)
	if err != nil {
		return e.Time
	}
	return command.TimeText(at.UnixMilli())
}

// eventSubject returns the id of the job of an event, or the subject of another one.
func eventSubject(e *event.Event) string { return strings.TrimPrefix(e.Subject, event.KindJobs+"/") }

// eventQueue returns the namespace and the queue of an event, "" if it has none.
func eventQueue(e *event.Event) string {
	if e.Data.Queue == "" {
		return ""
	}
	return e.Data.Namespace + "/" + e.Data.Queue
}

// eventAttempt returns the attempt of an event of a job, "-" for another one.
func eventAttempt(e *event.Event) string {
	if e.Kind() != event.KindJobs {
		return "-"
	}
	return strconv.Itoa(e.Data.Attempt)
}

// eventDetail returns what an event says besides its subject, "" for nothing: of an alias its
// versions, of a schedule its job, of a batch its counts, and else the reason and the error.
func eventDetail(e *event.Event) string {
	switch {
	case e.Data.Alias != "" && e.Data.Previous > 0:
		return fmt.Sprintf("version %d, before %d", e.Data.Version, e.Data.Previous)
	case e.Data.Alias != "":
		return fmt.Sprintf("version %d", e.Data.Version)
	case e.Data.Batch != nil:
		return fmt.Sprintf("%d jobs: %d succeeded, %d failed", e.Data.Batch.Total, e.Data.Batch.Succeeded, e.Data.Batch.Failed)
	case e.Type == event.ScheduleFired:
		return "job " + e.Data.JobID
	}
	if e.Data.Reason != "" && e.Data.Error != "" {
		return e.Data.Reason + ": " + e.Data.Error
	}
	return cmp.Or(e.Data.Reason, e.Data.Error)
}
