package schedules

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// scheduleFlags are the flags that describe a schedule. create sends all of them, and the
// server sets the defaults of those that are zero; update sends those that are set.
type scheduleFlags struct {
	every          time.Duration
	cron, timezone string

	function, ref   string
	queue           api.ScheduleQueue
	payload         string
	overlap         string
	queueLimit      int
	catchup         string
	maxCatchupTicks int
}

// registerTiming adds the flags of the timing, which next has too.
func (f *scheduleFlags) registerTiming(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&f.every, "every", 0, "tick at this interval, such as 5m, in whole seconds")
	flags.StringVar(&f.cron, "cron", "", "tick by five fields (minute, hour, day, month, weekday), or @hourly, @daily and the like")
	flags.StringVar(&f.timezone, "timezone", "", "time zone of --cron (default "+api.DefaultTimezone+")")
}

func (f *scheduleFlags) register(cmd *cobra.Command) {
	f.registerTiming(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.function, "function", "", "invoke this function")
	flags.StringVar(&f.ref, "ref", api.DefaultAlias, "with --function, the alias or version")
	flags.StringVar(&f.queue.Name, "queue", "", "add a job to this queue")
	flags.StringVar(&f.queue.UniqueKey, "unique-key", "", "with --queue, add the job only if no other job holds this key")
	flags.IntVar(&f.queue.MaxAttempts, "max-attempts", 0, "with --queue, largest number of attempts of the job")
	flags.StringVar((*string)(&f.queue.Priority), "priority", "", "with --queue, priority of the job: critical, high, normal or low")
	flags.StringVar(&f.payload, "payload", "", "event or payload as JSON, @FILE, or - for stdin (default {})")
	flags.StringVar(&f.overlap, "overlap", "", "while a run is active: skip the tick, queue it, or run it in parallel (default "+api.OverlapSkip+")")
	flags.IntVar(&f.queueLimit, "queue-limit", 0, fmt.Sprintf("with --overlap queue, largest number of runs that are active or wait (default %d)", api.DefaultQueueLimit))
	flags.StringVar(&f.catchup, "catchup", "", "which missed ticks to fire later: all, latest or none (default "+api.CatchupAll+")")
	flags.IntVar(&f.maxCatchupTicks, "max-catchup-ticks", 0, fmt.Sprintf("with --catchup all, largest number of missed ticks to fire (default %d)", api.DefaultMaxCatchupTicks))
}

// seconds returns --every in seconds, 0 if it is not set. It refuses parts of a second.
func (f *scheduleFlags) seconds() (int64, error) {
	if f.every < 0 || f.every%time.Second != 0 {
		return 0, errors.New("--every: must be whole seconds")
	}
	return int64(f.every / time.Second), nil
}

// target returns the target that --function and --ref, or --queue and its flags, describe.
// Both are nil if no flag names a target.
func (f *scheduleFlags) target(cmd *cobra.Command) (*api.JobTarget, *api.ScheduleQueue, error) {
	flags := cmd.Flags()
	for _, name := range []string{"unique-key", "max-attempts", "priority"} {
		if flags.Changed(name) && f.queue.Name == "" {
			return nil, nil, fmt.Errorf("--%s needs --queue", name)
		}
	}
	switch {
	case f.function != "" && f.queue.Name != "":
		return nil, nil, errors.New("--function and --queue: give one of them")
	case f.function != "":
		ref, err := command.ParseRef(f.ref)
		return &api.JobTarget{Function: f.function, Alias: ref.Alias, Version: ref.Version}, nil, err
	case flags.Changed("ref"):
		return nil, nil, errors.New("--ref needs --function")
	case f.queue.Name != "":
		return nil, &f.queue, nil
	}
	return nil, nil, nil
}

// scheduleCreateCommand returns sous schedule create. Whether the timing and the target fit
// together is for the server to decide: it answers CodeInvalid with the field.
func (a commands) scheduleCreateCommand() *cobra.Command {
	var f scheduleFlags
	var disabled bool
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a schedule",
		Example: `  sous schedule create report --cron '30 6 * * 1-5' --timezone Europe/Berlin --function report
  sous schedule create heartbeat --every 5m --queue checks --payload '{"deep": true}'
  sous schedule create import --every 1h --function import --overlap queue --catchup latest`,
		Args: cobra.ExactArgs(1),
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&disabled, "disabled", false, "create it without ticks until it is enabled")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n := api.NewSchedule{
			Name: args[0], Cron: f.cron, Timezone: f.timezone, OverlapPolicy: f.overlap, QueueLimit: f.queueLimit,
			Catchup: f.catchup, MaxCatchupTicks: f.maxCatchupTicks,
		}
		var err error
		n.EverySeconds, err = f.seconds()
		if err != nil {
			return err
		}
		n.Ref, n.Queue, err = f.target(cmd)
		if err != nil {
			return err
		}
		n.Payload, err = command.ReadJSONArg("payload", f.payload, a.Stdin, api.MaxSchedulePayload)
		if err != nil {
			return err
		}
		if disabled {
			on := false
			n.Enabled = &on
		}
		t, err := a.Target()
		if err != nil {
			return err
		}
		return a.printSchedule(t.Namespace.CreateSchedule(cmd.Context(), n))
	}
	return cmd
}

// scheduleUpdateCommand returns sous schedule update. With --if-revision the write fails with
// CodePreconditionFailed if another write came before.
func (a commands) scheduleUpdateCommand() *cobra.Command {
	var f scheduleFlags
	var revision int64
	cmd := &cobra.Command{
		Use: "update NAME", Short: "Change a schedule: settings without a flag stay",
		Example: `  sous schedule update report --cron '0 7 * * 1-5'
  sous schedule update heartbeat --every 1m --if-revision 3
  sous schedule update import --queue imports`,
		Args: cobra.ExactArgs(1),
	}
	f.register(cmd)
	cmd.Flags().Var(command.VersionFlag(&revision), "if-revision", "only if it has this revision now")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := f.change(cmd)
		if err != nil {
			return err
		}
		c.Payload, err = command.ReadJSONArg("payload", f.payload, a.Stdin, api.MaxSchedulePayload)
		if err != nil {
			return err
		}
		c.IfMatch = revision
		schedule, err := a.scheduleTarget(args[0])
		if err != nil {
			return err
		}
		return a.printSchedule(schedule.Update(cmd.Context(), c))
	}
	return cmd
}

// change returns the change that the given flags describe. A new timing or target of one
// kind removes the one of the other kind: a schedule with --every 5m that is updated with
// --cron '0 7 * * *' has the cron expression only. The payload is not part of the change
// that it returns.
func (f *scheduleFlags) change(cmd *cobra.Command) (c client.ScheduleChange, err error) {
	flags := cmd.Flags()
	if flags.Changed("every") && flags.Changed("cron") {
		return c, errors.New("--every and --cron: give one of them")
	}
	if flags.Changed("every") {
		seconds, err := f.seconds()
		if err != nil {
			return c, err
		}
		c.EverySeconds, c.Without = &seconds, append(c.Without, "cron")
	}
	if flags.Changed("cron") {
		c.Cron, c.Without = &f.cron, append(c.Without, "every_seconds")
	}
	for name, set := range map[string]func(){
		"timezone":          func() { c.Timezone = &f.timezone },
		"overlap":           func() { c.OverlapPolicy = &f.overlap },
		"queue-limit":       func() { c.QueueLimit = &f.queueLimit },
		"catchup":           func() { c.Catchup = &f.catchup },
		"max-catchup-ticks": func() { c.MaxCatchupTicks = &f.maxCatchupTicks },
	} {
		if flags.Changed(name) {
			set()
		}
	}
	c.Ref, c.Queue, err = f.target(cmd)
	if err != nil {
		return c, err
	}
	switch {
	case c.Ref != nil:
		c.Without = append(c.Without, "queue")
	case c.Queue != nil:
		c.Without = append(c.Without, "ref")
	}
	return c, nil
}
