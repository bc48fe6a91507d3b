package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// FlagError explains cobra's error about a flag of cmd: what the value must be, or the flag with
// the most similar name in place of an unknown one.
func FlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return invalidValue(invalid)
	}
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return NoSuchCommand(cmd, args) // whose flags are not known either
	}
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	nearest := similarFlag(name, known)
	if nearest == "" {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	return fmt.Errorf("%w; did you mean --%s?", err, nearest)
}

// valueRules say what the values of flags must be, by the type of the flag.
var valueRules = map[string]string{
	"int":      "want a whole number, such as 3",
	"int64":    "want a whole number, such as 3",
	"uint":     "want a whole number, 0 or more",
	"float64":  "want a number, such as 0.1",
	"bool":     "want true or false",
	"duration": "want a number with its unit, such as 30s, 15m or 24h",
}

// invalidValue returns the error of a value that is not of the type of its flag. Flags of types
// that this program declares explain their values themselves.
func invalidValue(err *pflag.InvalidValueError) error {
	flag := err.GetFlag()
	rule := err.Unwrap().Error()
	var number *strconv.NumError
	own := !errors.As(err, &number) && flag.Value.Type() != "duration" // as a VersionFlag, which has the type int
	if known := valueRules[flag.Value.Type()]; known != "" && !own {
		rule = known
	}
	if errors.Is(err, strconv.ErrRange) {
		rule = "the number is too large"
	}
	return fmt.Errorf("invalid argument %q for --%s: %s", err.GetValue(), flag.Name, rule)
}

// MissingFlags explains cobra's error about flags of cmd that are required, by their help. Other
// errors stay.
func MissingFlags(cmd *cobra.Command, err error) error {
	if !strings.HasPrefix(err.Error(), "required flag(s) ") {
		return err
	}
	names, text := []string{}, ""
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if required := f.Annotations[cobra.BashCompOneRequiredFlag]; len(required) > 0 && required[0] == "true" && !f.Changed {
			names = append(names, "--"+f.Name)
			text += "\n  --" + f.Name + ": " + f.Usage
		}
	})
	return fmt.Errorf("missing %s%s", strings.Join(names, ", "), text)
}
