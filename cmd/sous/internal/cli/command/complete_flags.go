package command

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
)

// completeFlags adds the completion of the flags of cmd, and of those that all commands below
// it have.
func (a *App) completeFlags(cmd *cobra.Command) {
	for flag, names := range map[string]func(context.Context, *Target) ([]string, error){
		"namespace": namespaceNames, "profile": profileNames, "tenant": tenantNames, "worker": workerIDs,
		"install": ownerIDs, "function": functionNames, "queue": queueNames,
	} {
		a.completeFlag(cmd, flag, func(ctx context.Context, t *Target, _ []string) ([]string, error) { return names(ctx, t) })
	}
	a.completeFlag(cmd, "ref", refNames)
	a.completeFlag(cmd, "to", versionNumbers)
	for flag, values := range flagValues {
		if cmd.PersistentFlags().Lookup(flag) == nil && cmd.LocalNonPersistentFlags().Lookup(flag) == nil {
			continue
		}
		// It fails only for a flag that does not exist, or that has a completion of its own.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// LogLevels are the levels of log lines, the lowest first.
var LogLevels = []string{"debug", "info", "warn", "error"}

// flagValues are the values of flags that have a few, whichever command they are of.
var flagValues = map[string][]string{
	"output":     {FormatText, FormatJSON},
	"status":     {string(api.StatusSuccess), string(api.StatusError), string(api.StatusTimeout), string(api.StatusCancelled)},
	"level":      LogLevels,
	"log-level":  LogLevels,
	"log-format": {"console", "json"},
	"auth":       {"keys", "off"},
	"role":       {api.RoleAdmin, api.RoleDeveloper, api.RoleOperator, api.RoleInvoker, api.RoleWorker, api.RoleViewer},
	"trigger":    {api.TriggerHTTP, api.TriggerAPI, api.TriggerSchedule, api.TriggerQueue, api.TriggerCadence},
	"priority":   {string(api.PriorityCritical), string(api.PriorityHigh), string(api.PriorityNormal), string(api.PriorityLow)},
	"overlap":    {api.OverlapSkip, api.OverlapQueue, api.OverlapParallel},
	"catchup":    {api.CatchupAll, api.CatchupLatest, api.CatchupNone},
}

// tenantNames returns the tenants that the saved profiles name and the one of the key: no route
// lists the tenants of a server.
func tenantNames(ctx context.Context, t *Target) ([]string, error) {
	found := map[string]bool{t.TenantName: true}
	if path, err := ProfilesPath(); err == nil {
		all, _ := LoadProfiles(path) // without profiles, the key's tenant is left
		for _, p := range all.Profiles {
			found[p.Tenant] = true
		}
	}
	if id, err := t.Client.WhoAmI(ctx); err == nil && id.Tenant != api.AllTenants {
		found[id.Tenant] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found)), nil
}

func workerIDs(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Tenant.Workers, func(w api.Worker) string { return w.ID + "\t" + Printable(w.Hostname) })
}

// ownerIDs returns the owners of documents, which the API calls installs.
func ownerIDs(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Tenant.Installs, func(i api.Install) string { return i.Install + "\t" + Printable(i.Description) })
}

// refNames returns the aliases and the versions of the function that the first argument names.
func refNames(ctx context.Context, t *Target, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	aliases, err := aliasNames(ctx, t, args[0])
	if err != nil {
		return nil, err
	}
	versions, err := versionNumbers(ctx, t, args)
	return append(aliases, versions...), err
}

// versionNumbers returns the versions of the function that the first argument names, newest
// first, with the times of their publication.
func versionNumbers(ctx context.Context, t *Target, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	fn, err := t.Function(args[0])
	if err != nil {
		return nil, err
	}
	return namesOf(ctx, fn.Versions, func(v api.Version) string {
		return strconv.FormatInt(v.Version, 10) + "\t" + TimeText(v.PublishedAtMS)
	})
}

// documentNamespaces returns the namespaces of the documents that --install or --function of
// cmd owns.
func documentNamespaces(ctx context.Context, t *Target, cmd *cobra.Command) ([]string, error) {
	install, _ := cmd.Flags().GetString("install") // "" where the command has no such flag
	if function, _ := cmd.Flags().GetString("function"); install == "" && function != "" {
		install = api.FunctionInstall(t.NamespaceName, function)
	}
	if install == "" {
		return nil, nil
	}
	found, err := t.Tenant.Install(install).Namespaces(ctx)
	names := make([]string, 0, len(found.Items))
	for _, n := range found.Items {
		names = append(names, n.Namespace)
	}
	return names, err
}
