package jobs

import (
	"cmp"
	"context"
	"errors"
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
		Use: "events", Short: "Print what happened to jobs, oldest first",
		Long: `Print the events of the jobs of the namespace, oldest first: their ends, and all changes of
jobs whose queue records all events. They are kept for 24 hours. With --follow the events to
come are printed, until interrupted.`,
		Example: `  sous events --type job.dead --since 24h
  sous events --all-namespaces --type 'job.c*' --follow
  sous events --queue emails --since 10m --follow -o json`,
		Args: cobra.NoArgs,
	}
	a.RegisterRemote(cmd.Flags())
	f.limit = command.RegisterLimit(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.selection.Types, "type", nil, "only this type, such as job.dead, or job.* for all that begin so; can be repeated")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(append(slices.Clone(event.Types), "job.*"), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	flags.StringVar(&f.selection.Queue, "queue", "", "only events of the jobs of this queue")
	flags.StringVar(&f.selection.Function, "function", "", "only events of the jobs of this function")
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
	return command.PrintList(a.App, items, []string{"TIME", "TYPE", "QUEUE", "JOB", "ATTEMPT", "WORKER", "ERROR"}, func(e event.Event) []string {
		return []string{
			eventTime(&e), e.Type, e.Data.Namespace + "/" + e.Data.Queue, eventJob(&e), strconv.Itoa(e.Data.Attempt), cmp.Or(e.Data.WorkerID, "-"), cmp.Or(eventError(&e), "-"),
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
	text := eventTime(e) + "  " + e.Type + "  " + e.Data.Namespace + "/" + e.Data.Queue + "  " + eventJob(e)
	if e.Data.Attempt > 0 {
		text += "  attempt " + strconv.Itoa(e.Data.Attempt)
	}
	if e.Data.WorkerID != "" {
		text += "  worker " + e.Data.WorkerID
	}
	if reason := eventError(e); reason != "" {
		text += "  " + reason
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

// eventJob returns the id of the job of an event.
func eventJob(e *event.Event) string { return strings.TrimPrefix(e.Subject, "jobs/") }

// eventError returns the reason and the error of an event, "" for neither.
func eventError(e *event.Event) string {
	if e.Data.Reason != "" && e.Data.Error != "" {
		return e.Data.Reason + ": " + e.Data.Error
	}
	return cmp.Or(e.Data.Reason, e.Data.Error)
}
