// Package schedules holds the commands about schedules: write.go has create and update,
// schedule.go all others.
//
// A schedule belongs to a namespace. It has a timing (--every or --cron), a target (a function
// or a queue), a payload, and the policies for overlapping and missed ticks, which
// docs/schedules.md explains. Commands write its record; replicas with the role scheduler
// fire it. schedule next computes ticks on this machine, with the code of the scheduler, so
// it needs a time zone database and no server.
package schedules

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines and images without a time zone database

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/scheduler"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about schedules.
func Commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{commands{a}.scheduleCommand()}
}

func (a commands) scheduleCommand() *cobra.Command {
	return a.RemoteGroup("schedule", "Run functions and fill queues by the clock",
		a.scheduleCreateCommand(), a.scheduleListCommand(),
		a.scheduleStateCommand("get", "Show a schedule, its next run and its last one", (*client.Schedule).Get),
		a.scheduleUpdateCommand(),
		a.scheduleEnableCommand("enable", "Start the ticks of a schedule, from now on", true),
		a.scheduleEnableCommand("disable", "Stop the ticks of a schedule until it is enabled", false),
		a.scheduleRunCommand(), a.scheduleDeleteCommand(), a.scheduleNextCommand())
}

// scheduleTarget returns the schedule of a command about name.
func (a commands) scheduleTarget(name string) (*client.Schedule, error) {
	if err := api.ValidateName("schedule", name); err != nil {
		return nil, err
	}
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	return t.Namespace.Schedule(name), nil
}

// scheduleListCommand returns sous schedule list, which lists the schedules of a namespace by
// their names.
func (a commands) scheduleListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the namespace's schedules with their state", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Namespace.Schedules, *limit, []string{"SCHEDULE", "WHEN", "TARGET", "NEXT", "LAST", "FIRED", "SKIPPED", "MISSED"}, scheduleRow)
	}
	return cmd
}

// scheduleRow returns the cells of a schedule in a list. FIRED, SKIPPED and MISSED count its
// ticks since it was created.
func scheduleRow(s api.ScheduleStatus) []string {
	last := "-"
	if s.LastRun != nil {
		last = command.TimeText(s.LastRun.FiredMS)
	}
	return []string{
		s.Name, whenText(&s.Schedule), targetText(&s.Schedule), nextText(&s), last,
		strconv.FormatInt(s.Fired, 10), strconv.FormatInt(s.Skipped, 10), strconv.FormatInt(s.Missed, 10),
	}
}

// whenText returns the timing of a schedule.
func whenText(s *api.Schedule) string {
	if s.Cron != "" {
		return s.Cron + " " + s.Timezone
	}
	return "every " + (time.Duration(s.EverySeconds) * time.Second).String()
}

// targetText returns the target of a schedule.
func targetText(s *api.Schedule) string {
	if s.Queue != nil {
		return "queue " + s.Queue.Name
	}
	return s.Ref.Function + "@" + s.Ref.Ref().String()
}

// nextText returns the time of the next tick in the time zone of this machine, which it names:
// the schedule may have another one.
func nextText(s *api.ScheduleStatus) string {
	if !s.Enabled {
		return "disabled"
	}
	if s.NextRunMS == 0 {
		return "-"
	}
	return time.UnixMilli(s.NextRunMS).Format(time.DateTime + " -07:00")
}

// scheduleStateCommand returns a command that calls do on the schedule that its argument names
// and prints the schedule that do returns.
func (a commands) scheduleStateCommand(name, short string, do func(*client.Schedule, context.Context) (api.ScheduleStatus, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			schedule, err := a.scheduleTarget(args[0])
			if err != nil {
				return err
			}
			return a.printSchedule(do(schedule, cmd.Context()))
		},
	}
}

// scheduleEnableCommand returns enable (on) or disable. Ticks that passed while a schedule was
// disabled are not caught up: an enabled schedule starts from that moment.
func (a commands) scheduleEnableCommand(name, short string, on bool) *cobra.Command {
	return a.scheduleStateCommand(name, short, func(s *client.Schedule, ctx context.Context) (api.ScheduleStatus, error) {
		return s.Update(ctx, client.ScheduleChange{Enabled: &on})
	})
}

// printSchedule prints the result of a call of the client, whose error it returns.
func (a commands) printSchedule(s api.ScheduleStatus, err error) error {
	if err != nil {
		return err
	}
	return a.Print(s, scheduleText(&s))
}

// scheduleText returns a schedule as a table. IN FLIGHT has the ids of the jobs of its ticks
// that have not ended; LAST SKIP the last tick that the overlap policy skipped, with the
// reason.
func scheduleText(s *api.ScheduleStatus) string {
	overlap := s.OverlapPolicy
	if s.OverlapPolicy == api.OverlapQueue {
		overlap = fmt.Sprintf("%s, up to %d", overlap, s.QueueLimit)
	}
	rows := [][]string{
		{"WHEN", whenText(&s.Schedule)},
		{"TARGET", targetText(&s.Schedule)},
		{"OVERLAP", overlap},
		{"CATCH-UP", fmt.Sprintf("%s, up to %d", s.Catchup, s.MaxCatchupTicks)},
		{"NEXT", nextText(s)},
		{"FIRED", strconv.FormatInt(s.Fired, 10)},
		{"SKIPPED", strconv.FormatInt(s.Skipped, 10)},
		{"MISSED", strconv.FormatInt(s.Missed, 10)},
		{"REVISION", strconv.FormatInt(s.Revision, 10)},
	}
	if s.LastRun != nil {
		rows = append(rows, []string{"LAST", strings.TrimSpace(command.TimeText(s.LastRun.FiredMS) + ", job " + s.LastRun.JobID + " " + string(s.LastRun.State))})
	}
	if s.LastSkip != nil {
		rows = append(rows, []string{"LAST SKIP", command.TimeText(s.LastSkip.TickMS) + ", " + s.LastSkip.Reason})
	}
	if len(s.InFlight) > 0 {
		rows = append(rows, []string{"IN FLIGHT", strings.Join(s.InFlight, " ")})
	}
	if len(s.Payload) > 0 {
		rows = append(rows, []string{"PAYLOAD", string(s.Payload)})
	}
	return command.Table([]string{"SCHEDULE", s.Name}, rows)
}

// scheduleRunCommand returns sous schedule run. It prints the activation if the target is a
// function, else the job. CodeScheduleBusy if the overlap policy allows no run now.
func (a commands) scheduleRunCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "run NAME", Short: "Fire a schedule now, as its overlap policy allows", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			schedule, err := a.scheduleTarget(args[0])
			if err != nil {
				return err
			}
			run, err := schedule.Run(cmd.Context(), key)
			if err != nil {
				return err
			}
			text := "job " + run.JobID + "\n"
			if run.ActivationID != "" {
				text = "activation " + run.ActivationID + "\n"
			}
			return a.Print(run, text)
		},
	}
	cmd.Flags().StringVar(&key, "idempotency-key", "", "run at most once under this key; a repeated call prints the job of the first run")
	return cmd
}

// scheduleDeleteCommand returns sous schedule delete.
func (a commands) scheduleDeleteCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "delete NAME", Short: "Delete a schedule; its jobs continue", Noun: "schedule %s",
		Find: func(name string) (func(context.Context) error, error) {
			schedule, err := a.scheduleTarget(name)
			return func(ctx context.Context) error { return schedule.Delete(ctx, 0) }, err
		},
	})
}

// tick is one line of the output of next.
type tick struct {
	TickMS int64  `json:"tick_ms"`
	Time   string `json:"time"` // RFC 3339, in the zone of the cron expression
}

// scheduleNextCommand returns sous schedule next. It prints the ticks after now by the clock
// of this machine. Ticks that an overlap policy will skip are among them.
func (a commands) scheduleNextCommand() *cobra.Command {
	var f scheduleFlags
	var count int
	cmd := &cobra.Command{
		Use: "next [NAME]", Short: "Print the next ticks of a schedule, or of a timing",
		Long: `Print the next ticks of a schedule, or, without asking a server, of a timing.

The phase of a schedule with an interval follows from its tenant, namespace and name, so
--every needs the name of the schedule.`,
		Example: `  sous schedule next nightly -n 10
  sous schedule next --cron '30 2 * * *' --timezone Europe/Berlin
  sous schedule next heartbeat --every 5m`,
		Args: cobra.MaximumNArgs(1),
	}
	f.registerTiming(cmd)
	cmd.Flags().IntVarP(&count, "count", "n", 5, "number of ticks")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if count < 1 || count > maxNextTicks {
			return fmt.Errorf("--count: must be from 1 to %d", maxNextTicks)
		}
		t, err := a.Target()
		if err != nil {
			return err
		}
		s, err := f.timed(cmd, t, args)
		if err != nil {
			return err
		}
		ticks, err := scheduler.NextTicks(t.TenantName, t.NamespaceName, s, time.Now().UnixMilli(), count)
		if err != nil {
			return err
		}
		if !s.Enabled {
			a.Note("the schedule is disabled; these would be its ticks if it were enabled now")
		}
		zone := time.Local
		if s.Cron != "" {
			zone, err = time.LoadLocation(s.Timezone)
			if err != nil {
				return err
			}
		}
		items := make([]tick, len(ticks))
		for i, ms := range ticks {
			items[i] = tick{ms, time.UnixMilli(ms).In(zone).Format(time.RFC3339Nano)}
		}
		return command.PrintList(a.App, items, []string{"NEXT"}, func(t tick) []string { return []string{t.Time} })
	}
	return cmd
}

// maxNextTicks is the largest --count, so that a slip of the hand ends.
const maxNextTicks = 10_000

// timed returns the schedule whose ticks next prints: the one that the flags describe, or
// the existing one that args name. Only the second asks the server. With --every, args must
// name the schedule although it need not exist: schedules of equal intervals tick at
// different moments, which follow from tenant, namespace and name.
func (f *scheduleFlags) timed(cmd *cobra.Command, t *command.Target, args []string) (*api.Schedule, error) {
	flags := cmd.Flags()
	switch {
	case flags.Changed("cron") || flags.Changed("every"):
		s := &api.Schedule{Cron: f.cron, Timezone: f.timezone, Enabled: true}
		if len(args) > 0 {
			s.Name = args[0]
			if err := api.ValidateName("schedule", s.Name); err != nil {
				return nil, err
			}
		} else if f.cron == "" {
			return nil, errors.New("name the schedule: the phase of its ticks follows from the name")
		}
		var err error
		s.EverySeconds, err = f.seconds()
		return s, err
	case flags.Changed("timezone"):
		return nil, errors.New("--timezone needs --cron")
	case len(args) == 0:
		return nil, errors.New("name the schedule, or give --cron")
	}
	if err := api.ValidateName("schedule", args[0]); err != nil {
		return nil, err
	}
	found, err := t.Namespace.Schedule(args[0]).Get(cmd.Context())
	return &found.Schedule, err
}
