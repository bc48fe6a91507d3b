package cadence

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// bindingFlags are the flags that describe a worker binding. create sends all of them, and the
// server sets the defaults of those that are zero; update sends those that are set.
type bindingFlags struct {
	domain, tasklist, workerID string
	activities                 []string
	pollers                    api.BindingPollers
	limits                     api.BindingLimits
}

func (f *bindingFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.domain, "domain", "", "Cadence's domain")
	flags.StringVar(&f.tasklist, "tasklist", "", "the tasklist of the activities")
	flags.StringVar(&f.workerID, "worker-id", "", "the identity that Cadence shows (default the name)")
	flags.StringArrayVar(&f.activities, "activity", nil, "TYPE=FUNCTION[@REF], for each activity type (REF is an alias or a version, default "+api.DefaultAlias+")")
	flags.IntVar(&f.pollers.Activity, "pollers", 0, fmt.Sprintf("concurrent polls for tasks, on each replica (default %d)", api.DefaultActivityPollers))
	flags.IntVar(&f.limits.MaxInflightTasks, "max-inflight", 0, fmt.Sprintf("most tasks in progress, on each replica (default %d)", api.DefaultInflightTasks))
}

// activityMap returns the functions that --activity names, by activity type. A type may
// contain "=" and "/", as Go's names of activities do; the last "=" separates it from the
// function:
//
//	Charge=charge            the function charge, alias prod
//	Charge=charge@canary     its alias canary
//	example.com/a.Pay=pay@7  its version 7
func (f *bindingFlags) activityMap() (map[string]api.JobTarget, error) {
	out := map[string]api.JobTarget{}
	for _, text := range f.activities {
		at := strings.LastIndexByte(text, '=')
		if at < 1 {
			return nil, fmt.Errorf("--activity %q: must be TYPE=FUNCTION[@REF]", text)
		}
		kind := text[:at]
		name, refText, given := strings.Cut(text[at+1:], "@")
		if err := api.ValidateName("function", name); err != nil {
			return nil, fmt.Errorf("--activity %q: %w", text, err)
		}
		if _, twice := out[kind]; twice {
			return nil, fmt.Errorf("--activity: type %q is given twice", kind)
		}
		target := api.JobTarget{Function: name, Alias: api.DefaultAlias}
		if given {
			ref, err := api.ParseRef(refText)
			if err != nil {
				return nil, fmt.Errorf("--activity %q: %w", text, err)
			}
			target.Alias, target.Version = ref.Alias, ref.Version
		}
		out[kind] = target
	}
	return out, nil
}

func (a commands) bindingCreateCommand() *cobra.Command {
	var f bindingFlags
	var disabled bool
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a worker binding",
		Example: `  sous cadence worker create charges --domain payments --tasklist charges --activity Charge=charge
  sous cadence worker create mails --domain shop --tasklist mails --activity Send=send@canary --activity Render=render@7 --max-inflight 20`,
		Args: cobra.ExactArgs(1),
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&disabled, "disabled", false, "create it without workers until it is enabled")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		activities, err := f.activityMap()
		if err != nil {
			return err
		}
		t, err := a.Target()
		if err != nil {
			return err
		}
		enabled := !disabled
		b, err := t.Namespace.CreateBinding(cmd.Context(), api.NewBinding{
			Name: args[0], Domain: f.domain, Tasklist: f.tasklist, WorkerID: f.workerID, ActivityMap: activities,
			Pollers: f.pollers, Limits: f.limits, Enabled: &enabled,
		})
		if err != nil {
			return err
		}
		return a.Print(b, bindingText(&b))
	}
	return cmd
}

// bindingUpdateCommand returns sous cadence worker update. Without --activity the map is
// empty and is not sent.
func (a commands) bindingUpdateCommand() *cobra.Command {
	var f bindingFlags
	var c client.BindingChange
	cmd := &cobra.Command{
		Use: "update NAME", Short: "Change a worker binding: settings without a flag stay",
		Long: `Change a worker binding: settings without a flag stay. --activity replaces the whole map:
types that it does not name are removed.`,
		Example: `  sous cadence worker update charges --pollers 16 --max-inflight 100
  sous cadence worker update charges --activity Charge=charge@canary --if-revision 3`,
		Args: cobra.ExactArgs(1),
	}
	f.register(cmd)
	cmd.Flags().Var(command.VersionFlag(&c.IfMatch), "if-revision", "only if it has this revision now")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for name, set := range map[string]func(){
			"domain":       func() { c.Domain = &f.domain },
			"tasklist":     func() { c.Tasklist = &f.tasklist },
			"worker-id":    func() { c.WorkerID = &f.workerID },
			"pollers":      func() { c.Pollers = &f.pollers },
			"max-inflight": func() { c.Limits = &f.limits },
		} {
			if cmd.Flags().Changed(name) {
				set()
			}
		}
		var err error
		c.ActivityMap, err = f.activityMap()
		if err != nil {
			return err
		}
		binding, err := a.bindingTarget(args[0])
		if err != nil {
			return err
		}
		b, err := binding.Update(cmd.Context(), c)
		if err != nil {
			return err
		}
		return a.Print(b, bindingText(&b))
	}
	return cmd
}
