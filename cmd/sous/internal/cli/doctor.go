package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/cmd/sous/internal/server"
)

// The verdicts of a check.
const (
	verdictOK   = server.LevelOK
	verdictOff  = server.LevelOff  // something that this host or the settings do not offer; the rest holds
	verdictWarn = server.LevelWarn // a risk, or a setting that could not be read
	verdictFail = server.LevelFail // functions cannot run, accepted work can be lost, or a named server or store does not answer
)

// checkup is one line of the output of sous doctor.
type checkup struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail"`
	Mend    string `json:"mend,omitempty"` // the command or the setting that mends it

	remote bool // a failure is one of the server or of the store
}

// doctorTimeout bounds each check that waits for another process.
const doctorTimeout = 10 * time.Second

// doctorCommand returns sous doctor. All checks run and are printed, also after one failed.
func (a commands) doctorCommand() *cobra.Command {
	var o server.PreflightOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine, a server and a store, and print remedies",
		Long: `Check this machine, a server and a store, and print remedies.

On this machine it starts a sandbox and reports which of its layers are active (an inactive
layer is one defence less, not an error), and examines the settings that a server started
in this folder would have: the address, the limit of open files, the memory, the data
folder, the key file of secrets and the certificate.

It asks the server that --url, SOUS_URL or the profile names for its readiness, its version
and its clock, and whether it accepts the API key. It examines the store that --store,
SOUS_STORE or the settings name: its version, its settings (docs/storage.md, Supported
servers), its clock and whether it has an API key.

A verdict of warn is a risk, or a setting that could not be read. Below a line that is
not ok stands what mends it. The exit code is 1 if a check of this machine or of the key
fails, 2 if only checks of the server or of the store fail.`,
		Example: `  sous doctor
  sous doctor --store redis://127.0.0.1:6666 --listen :8080
  sous doctor --url https://sous.example.com -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var checks []checkup
			_ = a.Working("examining", func() error { // every failure is a check
				checks = a.examine(cmd.Context(), o)
				return nil
			})
			if err := a.printCheckups(checks); err != nil {
				return err
			}
			return failedCheckups(checks)
		},
	}
	a.RegisterRemote(cmd.Flags())
	cmd.Flags().StringVar(&o.Store, "store", "", "examine this store (SOUS_STORE, or the setting of that name): "+server.StoreHelp)
	cmd.Flags().StringVar(&o.Config, "config", "", "YAML file of settings (SOUS_CONFIG; default ./sous.yaml where it exists)")
	cmd.Flags().StringVar(&o.Listen, "listen", "", "the address that a server is to have (SOUS_LISTEN, or the setting of that name)")
	cmd.Flags().StringVar(&o.DataDir, "data-dir", "", "the folder of the embedded store of sous dev (SOUS_DATA_DIR, or the setting of that name)")
	return cmd
}

// failedCheckups returns nil if no check failed. Else its error names them: an error of the
// user if one concerns this machine, one of the server otherwise.
func failedCheckups(checks []checkup) error {
	var failed []string
	local := false
	for _, c := range checks {
		if c.Verdict != verdictFail {
			continue
		}
		failed = append(failed, c.Name)
		local = local || !c.remote
	}
	if len(failed) == 0 {
		return nil
	}
	failed = slices.Compact(failed)
	err := fmt.Errorf("%s failed: %s", command.Plural(len(failed), "check"), strings.Join(failed, ", "))
	if local {
		return err
	}
	return command.ServerFailure(err)
}

// printCheckups prints a line for each check, and below it what mends it.
func (a commands) printCheckups(checks []checkup) error {
	if a.Output == command.FormatJSON {
		return a.Print(command.List[checkup]{Items: checks}, "")
	}
	rows := make([][]string, 0, len(checks))
	for _, c := range checks {
		rows = append(rows, []string{c.Name, c.Verdict, c.Detail})
	}
	lines := strings.SplitAfter(command.Table([]string{"CHECK", "VERDICT", "DETAIL"}, rows), "\n")
	column := strings.Index(lines[0], "VERDICT") // names of checks are ASCII
	var b strings.Builder
	b.WriteString(lines[0])
	for i, c := range checks {
		line := lines[i+1]
		end := column + len(c.Verdict)
		b.WriteString(line[:column] + a.Paint(verdictColors[c.Verdict], c.Verdict) + line[end:])
		if c.Mend != "" {
			b.WriteString("  to mend it: " + command.Printable(c.Mend) + "\n")
		}
	}
	return a.Print(nil, b.String())
}

var verdictColors = map[string]command.Color{
	verdictOK: command.Green, verdictOff: command.Gray, verdictWarn: command.Yellow, verdictFail: command.Red,
}

// errorText returns the text of an error as a cell of a table, of one line.
func errorText(err error) string {
	text, _, _ := strings.Cut(command.ErrorText(err), "\n")
	return text
}

// mendOf returns what to do about an error of a call.
func mendOf(err error, otherwise string) string {
	if hints := command.Hints(err); len(hints) > 0 {
		return strings.Join(hints, "; ")
	}
	return otherwise
}
