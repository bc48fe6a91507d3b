package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) jobCommand() *cobra.Command {
	commands := []*cobra.Command{a.jobEnqueueCommand(), a.jobGetCommand(), a.jobListCommand(), a.jobSearchCommand(), a.jobStatsCommand(), a.jobIterationsCommand(), a.bulkCommand()}
	return a.RemoteGroup("job", "Enqueue, show and control jobs", append(commands, a.transitionCommands()...)...)
}

// queueTarget returns the target of a command about the queue called name. It refuses a name
// that no queue can have, without a request; whether the queue exists shows at the request.
func (a commands) queueTarget(name string) (*client.Queue, error) {
	if err := api.ValidateQueue(name); err != nil {
		return nil, err
	}
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	return t.Namespace.Queue(name), nil
}

// idTarget returns the target of a command about things of one kind, and their ids. texts are
// the ids, or parts of them as command.App.Resolve takes them. It checks all of them first, so
// that a command about several does not stop half-way at a misspelt one.
func (a commands) idTarget(ctx context.Context, kind command.IDKind, texts ...string) (t *command.Target, ids []string, err error) {
	for _, text := range texts {
		if err := kind.Check(text); err != nil {
			return nil, nil, err
		}
	}
	t, err = a.Target()
	if err != nil {
		return nil, nil, err
	}
	for _, text := range texts {
		id, err := a.Resolve(ctx, t, kind, text)
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, id)
	}
	return t, ids, nil
}

// enqueueFlags are the flags of enqueue that are not fields of api.JobOptions. Their zero
// values leave the server's defaults.
type enqueueFlags struct {
	payload, options, idempotencyKey string
	in, expires                      time.Duration // from now on; sent as points in time
	uniqueFor                        time.Duration
	tags                             map[string]string
}

// jobEnqueueCommand returns sous job enqueue, which prints the id of the job.
// If another job holds the unique key, it prints that job and succeeds: the caller wanted the
// work to be queued, and it is.
func (a commands) jobEnqueueCommand() *cobra.Command {
	var f enqueueFlags
	var o api.JobOptions
	cmd := &cobra.Command{
		Use:   "enqueue QUEUE",
		Short: "Add a job to a queue and print its id",
		Example: `  sous job enqueue emails --payload '{"to": "ada@example.com"}' --tag kind=welcome
  sous job enqueue reports --payload @report.json --in 1h --max-attempts 10
  sous job enqueue emails --options '{"backoff": "fixed", "base_delay_ms": 1000}'`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.payload, "payload", "", "JSON, @FILE, or - for stdin (default null)")
	flags.StringVar((*string)(&o.Priority), "priority", "", "critical, high, normal or low")
	flags.DurationVar(&f.in, "in", 0, "run it after this time, such as 15m")
	flags.DurationVar(&f.expires, "expires", 0, "expire it after this time")
	flags.StringVar(&o.UniqueKey, "unique-key", "", "add it only if no other job of the queue has this key")
	flags.DurationVar(&f.uniqueFor, "unique-for", 0, "how long the job keeps its unique key (default 24h)")
	flags.IntVar(&o.MaxAttempts, "max-attempts", 0, "largest number of attempts (default 4)")
	flags.StringToStringVar(&f.tags, "tag", nil, "NAME=VALUE to find it by; may be repeated")
	flags.StringSliceVar(&o.DependsOn, "depends-on", nil, "ids of jobs that must complete first")
	flags.StringVar(&o.BatchID, "batch", "", "id of the batch that the job joins")
	flags.BoolVar(&o.Hold, "hold", false, "hold it until it is approved")
	flags.StringVar(&f.options, "options", "", "further options as JSON or @FILE: backoff, chain, result_schema and so on")
	flags.StringVar(&f.idempotencyKey, "idempotency-key", "", "makes the call safe to repeat for a day")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		queue, err := a.queueTarget(args[0])
		if err != nil {
			return err
		}
		_, o.DependsOn, err = a.idTarget(cmd.Context(), command.JobID, o.DependsOn...)
		if err != nil {
			return err
		}
		if o.BatchID != "" {
			_, ids, err := a.idTarget(cmd.Context(), command.BatchID, o.BatchID)
			if err != nil {
				return err
			}
			o.BatchID = ids[0]
		}
		job, err := a.newJob(f, o)
		if err != nil {
			return err
		}
		made, err := queue.Enqueue(cmd.Context(), f.idempotencyKey, job)
		if err != nil {
			return err
		}
		if made[0].Duplicate {
			a.Note("another job holds the unique key: nothing was added")
		}
		a.Note("%s is %s in %s", made[0].ID, made[0].State, args[0])
		return a.Print(made[0], made[0].ID+"\n")
	}
	return cmd
}

// newJob returns the job that --options and the other flags describe. The other flags
// override --options. With
//
//	--options '{"max_attempts": 3, "backoff": "fixed"}' --max-attempts 5
//
// the job has 5 attempts and a fixed backoff. It fails with CodeInvalid for an option that
// does not exist. --in and --expires count from the clock of this machine.
func (a commands) newJob(f enqueueFlags, o api.JobOptions) (job api.NewJob, err error) {
	options, err := command.ReadJSONArg("options", f.options, a.Stdin, api.MaxRequestBytes)
	if err != nil {
		return job, err
	}
	job.Payload, err = command.ReadJSONArg("payload", f.payload, a.Stdin, api.MaxJobPayloadBytes)
	if err != nil {
		return job, err
	}
	now := time.Now()
	if f.in > 0 {
		o.RunAtMS = now.Add(f.in).UnixMilli()
	}
	if f.expires > 0 {
		o.ExpireAtMS = now.Add(f.expires).UnixMilli()
	}
	o.UniqueTTLMS, o.Tags = f.uniqueFor.Milliseconds(), f.tags
	fromFlags, err := json.Marshal(o) // fields without a flag are left out
	if err != nil {
		return job, err
	}
	// The second value is decoded over the first, and changes only the fields that it has.
	for _, raw := range []json.RawMessage{options, fromFlags} {
		if len(raw) == 0 {
			continue
		}
		if err := command.DecodeStrict("--options", raw, &job.JobOptions); err != nil {
			return job, err
		}
	}
	return job, nil
}

// jobGetCommand returns sous job get, which is the only command that shows the attempts of a job
// and their errors: lists omit them.
func (a commands) jobGetCommand() *cobra.Command {
	timeline := false
	cmd := &cobra.Command{Use: "get ID", Short: "Show a job with its attempts and errors", Args: cobra.ExactArgs(1)}
	cmd.Flags().BoolVar(&timeline, "timeline", false, "also show its changes, from the log of events and from its record")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, ids, err := a.idTarget(cmd.Context(), command.JobID, args[0])
		if err != nil {
			return err
		}
		if timeline {
			job, err := t.Tenant.JobHistory(cmd.Context(), ids[0])
			if err != nil {
				return err
			}
			return a.Print(job, jobText(job.Job)+timelineText(job.Timeline))
		}
		job, err := t.Tenant.Job(cmd.Context(), ids[0])
		if err != nil {
			return err
		}
		return a.Print(job, jobText(job))
	}
	return cmd
}

// jobText returns a job as a table of the fields that it has, then its payload, progress,
// checkpoint and result, then its attempts, and its errors with their stacks.
func jobText(j api.Job) string {
	rows := [][]string{
		{"QUEUE", j.Namespace + "/" + j.Queue},
		{"STATE", string(j.State)},
		{"ATTEMPT", fmt.Sprintf("%d of %d", j.Attempt, j.MaxAttempts)},
		{"PRIORITY", string(j.Priority)},
		{"CREATED", command.TimeText(j.CreatedAtMS)},
	}
	add := func(name, value string) {
		if value != "" && value != "-" {
			rows = append(rows, []string{name, value})
		}
	}
	add("DUE", command.TimeText(j.DueAtMS))
	add("STARTED", command.TimeText(j.StartedAtMS))
	add("ENDED", command.TimeText(j.EndedAtMS))
	add("DEAD REASON", j.DeadReason)
	add("HOLD REASON", j.HoldReason)
	add("DEPENDS ON", strings.Join(j.DependsOn, " "))
	add("PARENT", j.ParentID)
	add("CALLBACK OF", j.CallbackOf)
	add("BATCH", j.BatchID)
	add("TAGS", tagsText(j.Tags))
	add("ACTIVATION", j.ActivationID)
	if j.Lease != nil {
		add("WORKER", fmt.Sprintf("%s, until %s", j.WorkerID, command.TimeText(j.Lease.ExpiresMS)))
	} else {
		add("WORKER", j.WorkerID)
	}
	add("HOST", j.Host)
	if j.Agent != nil {
		add("ITERATION", fmt.Sprintf("%d of %d", j.Iteration, j.Agent.Iterations()))
	}
	if j.Usage != nil {
		add("SPENT", spentText(*j.Usage))
	}
	var b strings.Builder
	b.WriteString(command.Table([]string{"JOB", j.ID}, rows))
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"payload", j.Payload}, {"progress", j.Progress}, {"checkpoint", j.Checkpoint}, {"result", j.Result}} {
		if part.raw != nil {
			fmt.Fprintf(&b, "\n%s: %s", part.name, command.IndentJSON(part.raw))
		}
	}
	b.WriteString(attemptsText(j.Attempts))
	for _, e := range j.Errors {
		fmt.Fprintf(&b, "\nattempt %d, %s: %s\n", e.Attempt, command.TimeText(e.AtMS), command.PrintableLines(e.Error))
		for line := range strings.Lines(e.Stack) {
			b.WriteString("  " + command.PrintableLines(strings.TrimRight(line, "\r\n")) + "\n")
		}
	}
	return b.String()
}

// tagsText returns tags as NAME=VALUE,… in the order of their names.
func tagsText(tags map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, name+"="+tags[name])
	}
	return strings.Join(out, ",")
}

// splitTag splits the --tag of a filter: NAME or NAME=VALUE. NAME alone selects every value.
func splitTag(s string) (name, value string) {
	name, value, _ = strings.Cut(s, "=")
	return name, value
}

// jobListCommand returns sous job list. The store has a set for each state, so the list goes
// from state to state. Within a state, ended jobs come newest first, others in the order in
// which they are due.
func (a commands) jobListCommand() *cobra.Command {
	var filter client.JobFilter
	var tag string
	cmd := &cobra.Command{Use: "list QUEUE", Short: "List a queue's jobs: all states, or one", Args: cobra.ExactArgs(1)}
	limit := command.RegisterLimit(cmd)
	cmd.Flags().StringVar((*string)(&filter.State), "state", "",
		"only those in this state: waiting, scheduled, held, pending, active, retrying, completed, dead or cancelled")
	_ = cmd.RegisterFlagCompletionFunc("state", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { // fails for an unknown flag only
		var states []string
		for _, state := range api.JobStates() {
			states = append(states, string(state))
		}
		return states, cobra.ShellCompDirectiveNoFileComp
	})
	cmd.Flags().StringVar(&tag, "tag", "", "only those with this tag: NAME or NAME=VALUE")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		queue, err := a.queueTarget(args[0])
		if err != nil {
			return err
		}
		filter.Tag, filter.TagValue = splitTag(tag)
		jobs, more, err := command.Collect(jobsByState(cmd.Context(), queue, filter), *limit)
		if err != nil {
			return err
		}
		a.NoteMore(more)
		return command.PrintList(a.App, jobs, []string{"JOB", "STATE", "CREATED", "SINCE", "DUE", "ATTEMPT", "PRIORITY", "TAGS", "REASON"}, jobRow)
	}
	return cmd
}

// jobsByState returns the jobs of a queue that match filter, state by state if filter names
// no state. It ends after the first error.
func jobsByState(ctx context.Context, queue *client.Queue, filter client.JobFilter) iter.Seq2[api.Job, error] {
	states := []api.JobState{filter.State}
	if filter.State == "" {
		states = api.JobStates()
	}
	return func(yield func(api.Job, error) bool) {
		for _, state := range states {
			one := filter
			one.State = state
			list := func(ctx context.Context, o client.PageOptions) (api.Page[api.Job], error) {
				return queue.Jobs(ctx, one, o)
			}
			for job, err := range client.All(ctx, list, client.PageOptions{}) {
				if !yield(job, err) || err != nil {
					return
				}
			}
		}
	}
}

// jobRow returns the cells of a job in a list. A job has at most one of the two reasons.
func jobRow(j api.Job) []string {
	return []string{j.ID, string(j.State), command.TimeText(j.CreatedAtMS), command.TimeText(j.StateSinceMS), command.TimeText(j.DueAtMS), strconv.Itoa(j.Attempt), string(j.Priority),
		tagsText(j.Tags), j.DeadReason + j.HoldReason}
}
