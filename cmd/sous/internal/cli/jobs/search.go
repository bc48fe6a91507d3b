package jobs

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// searchFlags are the flags of searches of jobs.
type searchFlags struct {
	given map[string]*string // by parameter of the API
	tags  []string
	all   bool
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
	f := registerSearch(cmd, func(string) bool { return false })
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
		return a.printSearch(cmd.Context(), t, q, *limit)
	}
	return cmd
}

// registerSearch adds the flags of searches to a command, but those of parameters for which without
// returns true.
func registerSearch(cmd *cobra.Command, without func(parameter string) bool) *searchFlags {
	flags, f := cmd.Flags(), &searchFlags{given: map[string]*string{}}
	for _, p := range search.JobParameters() {
		switch {
		case p.Name == "namespace" || p.Name == "q" || without(p.Name):
		case p.Boolean:
			flags.Bool(flagOf(p.Name), false, p.Doc)
		default:
			doc := p.Doc
			if p.Enum != nil {
				doc += ": " + strings.Join(p.Enum, ", ")
			}
			f.given[p.Name] = flags.String(flagOf(p.Name), "", doc)
		}
	}
	flags.StringArrayVar(&f.tags, "tag", nil, "only those with this tag, NAME=VALUE; may be repeated")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "jobs of all namespaces of the tenant")
	return f
}

// query returns the query of the flags, and of the argument QUERY if there is one.
func (f *searchFlags) query(t *command.Target, args []string) (search.Jobs, error) {
	values := url.Values{}
	for name, value := range f.given {
		if *value != "" {
			values.Set(name, *value)
		}
	}
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

// flagOf returns the flag of a parameter.
func flagOf(parameter string) string { return strings.ReplaceAll(parameter, "_", "-") }

// printSearch prints the jobs of a search as they are read.
func (a commands) printSearch(ctx context.Context, t *command.Target, q search.Jobs, limit uint) error {
	var first *search.Results[api.Job]
	list := func(ctx context.Context, o client.PageOptions) (api.Page[api.Job], error) {
		page, err := t.Tenant.SearchJobs(ctx, q, o)
		if first == nil {
			first = &page
		}
		q.Count = false // of the first page
		return api.Page[api.Job]{Items: page.Items, NextCursor: page.NextCursor}, err
	}
	jobs, more, err := command.Collect(client.All(ctx, list, client.PageOptions{}), limit)
	if err != nil {
		return err
	}
	a.NoteMore(more)
	if first.Count != nil {
		a.Note("%s", countText(*first.Count))
	}
	if first.Mirror != nil && first.Mirror.Rebuilding {
		a.Note("the mirror is being rebuilt: jobs may be missing")
	}
	return command.PrintList(a.App, jobs, []string{"JOB", "QUEUE", "STATE", "CREATED", "ENDED", "ATTEMPT", "WORKER", "TAGS", "ERROR"}, searchRow)
}

// countText returns a count as a sentence.
func countText(c search.MatchCount) string {
	if !c.Exact {
		return fmt.Sprintf("at least %d jobs match", c.Value)
	}
	if c.Value == 1 {
		return "1 job matches"
	}
	return fmt.Sprintf("%d jobs match", c.Value)
}

// searchRow returns the cells of a job that was found.
func searchRow(j api.Job) []string {
	failure := j.DeadReason
	if len(j.Errors) > 0 {
		failure = j.Errors[len(j.Errors)-1].Error
	}
	return []string{j.ID, j.Namespace + "/" + j.Queue, string(j.State), command.TimeText(j.CreatedAtMS), command.TimeText(j.EndedAtMS), fmt.Sprint(j.Attempt), j.WorkerID, tagsText(j.Tags), failure}
}
