package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// searchFlags are the flags of searches of jobs.
type searchFlags struct {
	command.ParameterFlags
	tags []string
	all  bool
}

// jobSearchCommand returns sous job search. Its flags are the parameters of the search.
func (a commands) jobSearchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "search [QUERY]", Short: "Search the jobs of all queues", Args: cobra.MaximumNArgs(1),
		Long: "Search the jobs of all queues of the namespace, or with --all-namespaces of the tenant. QUERY is a full-text\n" +
			"query: words, \"phrases\", prefix*, AND, OR, NOT and column:word. A replica with the role mirror answers.",
		Example: `  sous job search --state dead --tag customer=c42 --sort ended
  sous job search '"card declined" error:timeout' --queue payments,refunds --count
  sous job search --all-namespaces --worker w7 --ended-from-ms 1760000000000`,
	}
	limit := command.RegisterLimit(cmd)
	f := registerSearch(cmd, search.JobParameters(), func(string) bool { return false })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		q, err := f.query(t, args)
		if err != nil {
			return err
		}
		q.Count, _ = cmd.Flags().GetBool("count") // it exists
		list := func(ctx context.Context, o client.PageOptions) (search.Results[api.Job], error) {
			page, err := t.Tenant.SearchJobs(ctx, q, o)
			q.Count = false // of the first page
			return page, err
		}
		return command.PrintSearch(cmd.Context(), a.App, list, *limit, "job",
			[]string{"JOB", "QUEUE", "STATE", "CREATED", "ENDED", "ATTEMPT", "WORKER", "TAGS", "ERROR"}, searchRow)
	}
	return cmd
}

// jobStatsCommand returns sous job stats.
func (a commands) jobStatsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stats [QUERY]", Short: "Show how many jobs ended, how, and how long they took", Args: cobra.MaximumNArgs(1),
		Long: "Show how many jobs of all queues of the namespace ended, or with --all-namespaces of the tenant, their times in ms\n" +
			"from the creation to the start (WAIT) and from the start to the end (RUN), and the most frequent failures. The flags\n" +
			"and QUERY select jobs as those of job search. A replica with the role mirror answers.",
		Example: `  sous job stats --queue mail --since 24h --bucket 1h
  sous job stats --all-namespaces -o json`,
	}
	within := command.RegisterSeries(cmd)
	f := registerSearch(cmd, search.JobSeriesParameters(), func(string) bool { return false })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		q, err := f.query(t, args)
		if err != nil {
			return err
		}
		series, err := t.Tenant.JobSeries(cmd.Context(), q, within())
		if err != nil {
			return err
		}
		return a.PrintSeries(series, "job")
	}
	return cmd
}

// registerSearch adds the flags of searches to a command, but those of parameters for which without
// returns true.
func registerSearch(cmd *cobra.Command, parameters []search.Parameter, without func(parameter string) bool) *searchFlags {
	f := &searchFlags{ParameterFlags: command.RegisterParameters(cmd, parameters, func(name string) bool {
		return name == "namespace" || name == "q" || without(name)
	})}
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "only those with this tag, NAME=VALUE; may be repeated")
	cmd.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "jobs of all namespaces of the tenant")
	return f
}

// query returns the query of the flags, and of the argument QUERY if there is one.
func (f *searchFlags) query(t *command.Target, args []string) (search.Jobs, error) {
	values := f.Values()
	if len(args) == 1 {
		values.Set("q", args[0])
	}
	if !f.all {
		values.Set("namespace", t.NamespaceName)
	}
	for _, tag := range f.tags {
		name, value := splitTag(tag)
		values.Add(search.TagPrefix+name, value)
	}
	return search.ParseJobs(values)
}

// searchRow returns the cells of a job that was found.
func searchRow(j api.Job) []string {
	failure := j.DeadReason
	if len(j.Errors) > 0 {
		failure = j.Errors[len(j.Errors)-1].Error
	}
	return []string{j.ID, j.Namespace + "/" + j.Queue, string(j.State), command.TimeText(j.CreatedAtMS), command.TimeText(j.EndedAtMS), fmt.Sprint(j.Attempt), j.WorkerID, tagsText(j.Tags), failure}
}
