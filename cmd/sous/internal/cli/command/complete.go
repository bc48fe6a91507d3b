package command

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/api/webhook"
)

const (
	completeWithin = time.Second      // a shell waits this long for the server
	completeLimit  = api.MaxPageLimit // names that a completion offers: one page
)

// completions are the names that the first argument of a command may have, by the name of its
// group and that argument. An empty group stands for all others.
var completions = map[[2]string]func(context.Context, *Target) ([]string, error){
	{"", "QUEUE"}:          queueNames,
	{"fn", "NAME"}:         functionNames,
	{"alias", "NAME"}:      functionNames,
	{"", "[FUNCTION]"}:     functionNames,
	{"sous", "NAME"}:       functionNames, // pull
	{"schedule", "NAME"}:   scheduleNames,
	{"schedule", "[NAME]"}: scheduleNames, // next
	{"job", "ID"}:          jobIDs,
	{"task", "TYPE"}:       taskTypes,
	{"secret", "NAME"}:     secretNames,
	{"worker", "NAME"}:     bindingNames,
	{"domain", "DOMAIN"}:   domainNames,
	{"webhook", "NAME"}:    webhookNames,
	{"provider", "NAME"}:   providerNames,
	{"keys", "ID"}:         keyIDs,
	{"batch", "ID"}:        batchIDs,
	{"activation", "ID"}:   activationIDs,
	{"profile", "NAME"}:    profileNames,
	{"owner", "ID"}:        ownerIDs,
}

// secondCompletions are those of the second argument, for what the first names.
var secondCompletions = map[[2]string]func(context.Context, *Target, string) ([]string, error){
	{"alias", "ALIAS"}:      aliasNames,
	{"domain", "FUNCTION"}:  func(ctx context.Context, t *Target, _ string) ([]string, error) { return functionNames(ctx, t) },
	{"trigger", "FUNCTION"}: func(ctx context.Context, t *Target, _ string) ([]string, error) { return functionNames(ctx, t) },
	{"job", "QUEUE"}:        func(ctx context.Context, t *Target, _ string) ([]string, error) { return queueNames(ctx, t) },
	{"task", "ID"}:          taskIDs,
	{"task", "[ID]"}:        taskIDs,
}

// RegisterCompletions adds the completion of names to root and all commands below it, by the
// arguments in their usage, and to their flags (complete_flags.go). If the server cannot be
// reached, they complete nothing.
func (a *App) RegisterCompletions(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		a.RegisterCompletions(cmd)
	}
	a.completeFlags(root)
	words := strings.Fields(root.Use)
	if len(words) < 2 || root.ValidArgsFunction != nil || words[0] == "create" || words[0] == "init" {
		return
	}
	group := root.Parent().Name()
	names := completions[[2]string{group, words[1]}]
	if names == nil {
		names = completions[[2]string{"", words[1]}]
	}
	var second func(context.Context, *Target, string) ([]string, error)
	if len(words) > 2 {
		second = secondCompletions[[2]string{group, words[2]}]
	}
	if words[1] == "NAMESPACE" {
		root.ValidArgsFunction = a.completeDocumentNamespace
		return
	}
	if names == nil {
		return
	}
	root.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return a.complete(cmd, names)
		case len(args) == 1 && second != nil:
			return a.complete(cmd, func(ctx context.Context, t *Target) ([]string, error) { return second(ctx, t, args[0]) })
		case len(args) == 2 && len(words) > 3 && words[3] == "VERSION":
			return a.complete(cmd, func(ctx context.Context, t *Target) ([]string, error) { return versionNumbers(ctx, t, args) })
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeDocumentNamespace completes the first argument of the commands of sous storage.
func (a *App) completeDocumentNamespace(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(cmd, func(ctx context.Context, t *Target) ([]string, error) { return documentNamespaces(ctx, t, cmd) })
}

// completeFlag adds the completion of a flag to the command that declares it. names gets the
// arguments that are given already.
func (a *App) completeFlag(cmd *cobra.Command, flag string, names func(context.Context, *Target, []string) ([]string, error)) {
	if cmd.PersistentFlags().Lookup(flag) == nil && cmd.LocalNonPersistentFlags().Lookup(flag) == nil {
		return
	}
	// It fails only for a flag that does not exist, or that has a completion of its own.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.complete(cmd, func(ctx context.Context, t *Target) ([]string, error) { return names(ctx, t, args) })
	})
}

// complete returns the names for a shell. An error leaves nothing to complete.
func (a *App) complete(cmd *cobra.Command, names func(context.Context, *Target) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	t, err := a.Target()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, _ := names(ctx, t)
	return found, cobra.ShellCompDirectiveNoFileComp
}

func secretNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Secrets, func(s api.Secret) string { return s.Name })
}

func webhookNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Tenant.Webhooks, func(w webhook.Webhook) string { return w.Name })
}

func providerNames(ctx context.Context, t *Target) ([]string, error) {
	found, err := t.Tenant.Providers(ctx)
	names := make([]string, len(found))
	for i, p := range found {
		names[i] = p.Name
	}
	return names, err
}

func domainNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Tenant.Domains, func(d domain.Domain) string { return d.Domain })
}

func bindingNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Bindings, func(b api.BindingStatus) string { return b.Name })
}

func namespaceNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Tenant.Namespaces, func(n client.NamespaceRecord) string { return n.Namespace })
}

// keyIDs returns the ids with the names of the keys, which shells show beside them.
func keyIDs(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Tenant.Keys, func(k api.Key) string { return k.ID + "\t" + Printable(k.Name) })
}

func batchIDs(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Batches, func(b api.Batch) string { return b.ID })
}

// activationIDs returns the latest activations of the namespace, with function and status.
func activationIDs(ctx context.Context, t *Target) ([]string, error) {
	page, err := t.Tenant.Activations(ctx, client.ActivationFilter{Namespace: t.NamespaceName}, client.PageOptions{})
	ids := make([]string, 0, len(page.Items))
	for _, act := range page.Items {
		ids = append(ids, act.ActivationID+"\t"+act.Function+" "+string(act.Status))
	}
	return ids, err
}

// jobIDs returns jobs of the namespace, with queue and state: the first page of each state that
// a queue has jobs in.
func jobIDs(ctx context.Context, t *Target) ([]string, error) {
	var ids []string
	for queue, err := range client.All(ctx, t.Namespace.Queues, client.PageOptions{}) {
		if err != nil {
			return ids, err
		}
		for _, state := range api.JobStates() {
			if queue.Depths[state] == 0 {
				continue
			}
			page, err := t.Namespace.Queue(queue.Queue).Jobs(ctx, client.JobFilter{State: state}, client.PageOptions{})
			if err != nil {
				return ids, err
			}
			for _, job := range page.Items {
				ids = append(ids, job.ID+"\t"+queue.Queue+" "+string(state))
			}
			if len(ids) >= completeLimit {
				return ids, nil
			}
		}
	}
	return ids, nil
}

// taskTypes returns the types of the tasks that have not ended.
func taskTypes(ctx context.Context, t *Target) ([]string, error) {
	types, err := namesOf(ctx, openTasks(t, ""), func(k api.Task) string { return k.TaskType })
	slices.Sort(types)
	return slices.Compact(types), err
}

// taskIDs returns the tasks of a type that have not ended, with their states.
func taskIDs(ctx context.Context, t *Target, taskType string) ([]string, error) {
	return namesOf(ctx, openTasks(t, taskType), func(k api.Task) string { return k.TaskID + "\t" + string(k.State) })
}

// openTaskPaths returns the types and ids of the tasks that have not ended.
func openTaskPaths(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, openTasks(t, ""), func(k api.Task) string { return k.TaskType + "/" + k.TaskID })
}

// openTasks returns the list call of the tasks of a type, "" for all.
func openTasks(t *Target, taskType string) func(context.Context, client.PageOptions) (api.Page[api.Task], error) {
	return func(ctx context.Context, o client.PageOptions) (api.Page[api.Task], error) {
		return t.Tenant.Tasks(ctx, client.TaskFilter{Type: taskType}, o)
	}
}

func aliasNames(ctx context.Context, t *Target, function string) ([]string, error) {
	fn, err := t.Function(function)
	if err != nil {
		return nil, err
	}
	return namesOf(ctx, fn.Aliases, func(a api.Alias) string { return a.Alias })
}

// profileNames returns the saved profiles. It calls no server.
func profileNames(context.Context, *Target) ([]string, error) {
	path, err := ProfilesPath()
	if err != nil {
		return nil, err
	}
	all, err := LoadProfiles(path)
	return slices.Sorted(maps.Keys(all.Profiles)), err
}

func queueNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Queues, func(q api.Queue) string { return q.Queue })
}

func functionNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Functions, func(f api.Function) string { return f.Name })
}

func triggerQueues(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Triggers, func(q trigger.QueueTrigger) string { return q.Queue })
}

func kvKeys(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, func(ctx context.Context, o client.PageOptions) (api.Page[api.KVEntry], error) {
		return t.Namespace.KV(ctx, "", o)
	}, func(e api.KVEntry) string { return e.Key })
}

func scheduleNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Schedules, func(s api.ScheduleStatus) string { return s.Name })
}

// namesOf returns the names of the first completeLimit items of a listing.
func namesOf[T any](ctx context.Context, list func(context.Context, client.PageOptions) (api.Page[T], error), name func(T) string) ([]string, error) {
	items, _, err := Collect(client.All(ctx, list, client.PageOptions{Limit: completeLimit}), completeLimit)
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, name(item))
	}
	return out, err
}
