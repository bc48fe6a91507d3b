package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
)

// ExplainArguments has the commands below root answer a wrong number of arguments with their
// usage. cobra's own messages do not name the arguments.
//
//	sous fn deploy      missing DIR
//	                      usage: sous fn deploy DIR [flags]
func ExplainArguments(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		ExplainArguments(cmd)
		if check := cmd.Args; check != nil && !cmd.HasSubCommands() {
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				err := check(cmd, args)
				if err != nil && isCobras(err) {
					return wrongArguments(cmd, args)
				}
				return err
			}
		}
	}
}

// isCobras reports whether err is of cobra's own checks, not of a command's.
func isCobras(err error) bool {
	for _, prefix := range []string{"accepts ", "requires ", "unknown command "} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}

// wrongArguments returns the error for arguments that cmd does not take.
func wrongArguments(cmd *cobra.Command, args []string) error {
	_, named, _ := strings.Cut(cmd.Use, " ")
	names := strings.Fields(named)
	why := "unexpected argument " + strings.Join(args[min(len(names), len(args)):], " ")
	if len(args) < len(names) {
		why = "missing " + strings.Join(names[len(args):], " ")
	}
	return fmt.Errorf("%s\n  usage: %s", why, cmd.UseLine())
}

// UnknownFlag adds the flag of cmd with the most similar name to cobra's error about an unknown
// one, and says where all flags are listed.
func UnknownFlag(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	nearest := api.Nearest(name, known)
	if nearest == "" {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	return fmt.Errorf("%w; did you mean --%s?", err, nearest)
}
