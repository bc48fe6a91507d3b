package functions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/traffic"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) fnListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the namespace's functions, with their calls and last failures", Args: cobra.NoArgs,
		Long: `List the namespace's functions.

VERSION is the one that the alias prod serves; ALIASES has the versions of other aliases.
CALLS and FAILED count the calls that ended in the current hour and the 23 hours before it;
where several replicas run functions, up to 2 seconds late. LAST FAILURE is kept for a week.`,
	}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		header := []string{"NAME", "VERSION", "ALIASES", "CALLS", "FAILED", "LAST FAILURE", "CREATED", "DESCRIPTION"}
		return command.PrintPages(cmd.Context(), a.App, t.Namespace.FunctionCalls, *limit, header, functionRow)
	}
	return cmd
}

// functionRow returns the cells of a function in a list.
func functionRow(f traffic.FunctionCalls) []string {
	version := "-"
	aliases := make([]string, 0, len(f.Aliases))
	for _, alias := range f.Aliases {
		if alias.Alias == api.DefaultAlias {
			version = fmt.Sprint(alias.Version)
			aliases = append(aliases, alias.Alias)
			continue
		}
		aliases = append(aliases, fmt.Sprintf("%s=%d", alias.Alias, alias.Version))
	}
	slices.Sort(aliases)
	return []string{
		f.Name, version, command.Mark(len(aliases) > 0, strings.Join(aliases, " ")), fmt.Sprint(f.Calls), fmt.Sprint(f.Failures),
		failureText(f.LastFailure), command.TimeText(f.CreatedAtMS), f.Description,
	}
}

// failureText returns the time and the summary of a failure, "-" without one.
func failureText(f *traffic.FunctionFailure) string {
	if f == nil {
		return "-"
	}
	reason := command.ErrorSummary(&api.ActivationError{Type: f.Type, Message: f.Message})
	return command.TimeText(f.AtMS) + " " + reason
}
