package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) runCommand() *cobra.Command {
	return a.RemoteGroup("run", "Show runs with durable steps, and send events to them", a.runGetCommand(), a.runSendCommand())
}

// runGetCommand returns sous run get.
func (a commands) runGetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show a run with its steps as a tree", Args: cobra.ExactArgs(1),
		Long: `Show a run with its steps as a tree: those that have ended, in that order, and then the others.
The id of a run is that of its job. With -o json, also the results of the steps.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, ids, err := a.idTarget(cmd.Context(), command.JobID, args[0])
			if err != nil {
				return err
			}
			run, err := t.Tenant.Run(cmd.Context(), ids[0])
			if err != nil {
				return err
			}
			return a.Print(run, runTree(&run, time.Now()))
		},
	}
}

// runTree returns a run as text: a line for the run, and below it one for each step.
func runTree(run *step.Run, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s", run.ID, run.Queue, run.State)
	for _, reason := range []string{run.HoldReason, run.DeadReason, run.Error} {
		if reason != "" {
			fmt.Fprintf(&b, " (%s)", oneLine(reason))
		}
	}
	end := run.EndedAt
	if end == 0 {
		end = now.UnixMilli()
	}
	fmt.Fprintf(&b, "  %s\n", spanText(run.CreatedAt, end))
	for i := range run.Steps {
		branch := "├─"
		if i == len(run.Steps)-1 {
			branch = "└─"
		}
		fmt.Fprintf(&b, "%s %s\n", branch, runStepText(&run.Steps[i], run.CreatedAt, now))
	}
	if len(run.Events) > 0 {
		fmt.Fprintf(&b, "events not taken: %s\n", strings.Join(run.Events, ", "))
	}
	return b.String()
}

// runStepText returns a step as a line: what it is, its status, when it began after the run, and how
// long it took.
func runStepText(s *step.Step, began int64, now time.Time) string {
	what := s.Label()
	if s.Kind != step.KindStep && string(s.Kind) != s.Name {
		what = string(s.Kind) + " " + what
	}
	line := what + "  " + string(s.Status) + "  +" + spanText(began, s.StartedAtMS)
	switch {
	case s.EndedAtMS > 0:
		line += "  " + spanText(s.StartedAtMS, s.EndedAtMS)
	case s.DueAtMS > 0:
		line += "  until " + time.UnixMilli(s.DueAtMS).UTC().Format(time.RFC3339) + " (in " + spanText(now.UnixMilli(), s.DueAtMS) + ")"
	}
	if s.Attempts > 1 {
		line += "  attempts " + strconv.Itoa(s.Attempts)
	}
	if s.Error != nil {
		line += "  " + oneLine(s.Error.Message)
	}
	return line
}

// oneLine returns a text of a function or a person without its line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// spanText returns the time between two moments in milliseconds, rounded for people.
func spanText(from, to int64) string {
	d := time.Duration(max(0, to-from)) * time.Millisecond
	switch {
	case d >= time.Hour:
		d = d.Round(time.Minute)
	case d >= time.Minute:
		d = d.Round(time.Second)
	}
	return d.String()
}

// runSendCommand returns sous run send.
func (a commands) runSendCommand() *cobra.Command {
	var id, payload string
	cmd := &cobra.Command{
		Use: "send NAME", Short: "Send an event to the runs of the namespace that wait for it, or to one run", Args: cobra.ExactArgs(1),
		Long: `Send an event to the runs of the namespace that wait for it by cs.waitForEvent, or with --run to
one run. That one has the event until it waits for it, also if it does not wait yet.`,
		Example: `  sous run send paid --payload '{"order": 7}'
  sous run send paid --run 0198c0de-0000-7000-8000-000000000000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := command.ReadJSONArg("payload", payload, a.Stdin, step.MaxResultBytes)
			if err != nil {
				return err
			}
			if id == "" {
				t, err := a.Target()
				if err != nil {
					return err
				}
				sent, err := t.Namespace.SendEvent(cmd.Context(), args[0], raw)
				if err != nil {
					return err
				}
				return a.Print(sent, "sent to "+command.Plural(sent.Delivered, "run")+"\n")
			}
			t, ids, err := a.idTarget(cmd.Context(), command.JobID, id)
			if err != nil {
				return err
			}
			if err := t.Tenant.SendRunEvent(cmd.Context(), ids[0], args[0], raw); err != nil {
				return err
			}
			return a.Print(step.Sent{Delivered: 1}, "sent to "+ids[0]+"\n")
		},
	}
	cmd.Flags().StringVar(&id, "run", "", "the id of the run (default: all runs of the namespace that wait for the event)")
	cmd.Flags().StringVar(&payload, "payload", "", "payload of the event: JSON, @FILE, or - for stdin (default null)")
	return cmd
}
