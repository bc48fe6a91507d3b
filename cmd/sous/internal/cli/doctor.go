package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/cmd/sous/internal/server"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/examine"
)

// The verdicts of a check.
const (
	verdictOK   = "ok"
	verdictOff  = "off"  // a layer that this host does not offer; the others hold
	verdictWarn = "warn" // a risk, or a setting that could not be read
	verdictFail = "fail" // functions cannot run, accepted work can be lost, or a named server or store does not answer
)

// checkup is one line of the output of sous doctor.
type checkup struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail"`
}

// doctorTimeout bounds each check that waits for another process.
const doctorTimeout = 10 * time.Second

// doctorCommand returns sous doctor. All checks run and are printed, also after one failed.
// The error of the sandbox comes first: without sandboxes nothing else matters, and its exit
// code is 1, while the server and the store are 2.
func (a commands) doctorCommand() *cobra.Command {
	var store string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine, a server and a store",
		Long: `Check this machine, a server and a store.

It starts a sandbox and reports which of its layers are active on this machine (an
inactive layer is one defence less, not an error), asks the server for its readiness,
and examines the store that --store or SOUS_STORE names: its version, its settings
(docs/storage.md, Supported servers) and its clock. A verdict of warn is a risk, or a
setting that could not be read. The exit code is 1 if a check fails, 2 if only checks
of the server or of the store fail.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks, sandboxErr := checkSandbox(cmd.Context())
			served, remoteErr := a.checkServer(cmd.Context())
			checks = append(checks, served)
			if url := server.StoreURL(store); url != "" {
				found, err := checkStore(cmd.Context(), url)
				checks, remoteErr = append(checks, found...), errors.Join(remoteErr, err)
			}
			checks = append(checks, checkConfig())
			err := command.PrintList(a.App, checks, []string{"CHECK", "VERDICT", "DETAIL"}, func(c checkup) []string {
				return []string{c.Name, c.Verdict, c.Detail}
			})
			if err != nil {
				return err
			}
			if sandboxErr != nil {
				return sandboxErr
			}
			return remoteErr
		},
	}
	a.RegisterRemote(cmd.Flags())
	cmd.Flags().StringVar(&store, "store", "", "examine this store too (SOUS_STORE): "+server.StoreHelp)
	return cmd
}

// checkSandbox starts a sandbox and reports the layers that confine it.
func checkSandbox(ctx context.Context) ([]checkup, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	executable, closeExecutable, err := server.SandboxExecutable()
	if err != nil {
		return []checkup{{"sandbox", verdictFail, err.Error()}}, err
	}
	layers, err := sandbox.Doctor(ctx, sandbox.Config{Executable: executable})
	err = errors.Join(err, closeExecutable())
	if err != nil {
		return []checkup{{"sandbox", verdictFail, err.Error()}}, fmt.Errorf("sandbox: %w", err)
	}
	out := []checkup{{"sandbox", verdictOK, "a child starts and answers"}}
	for _, l := range layers {
		verdict := verdictOff
		if l.Active {
			verdict = verdictOK
		}
		out = append(out, checkup{"sandbox: " + l.Name, verdict, l.Detail})
	}
	return out, nil
}

// checkServer asks the target for its readiness. A missing server at the default address
// is no failure unless the user named that address: doctor is also run before there is one.
func (a commands) checkServer(ctx context.Context) (checkup, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	t, err := a.Target()
	if err != nil {
		return checkup{"server", verdictFail, err.Error()}, err
	}
	err = t.Client.Ready(ctx)
	switch {
	case err == nil:
		return checkup{"server", verdictOK, t.Client.URL() + " is ready"}, nil
	case t.Client.URL() == command.DefaultURL && !a.NamesServer():
		return checkup{"server", verdictOff, err.Error() + " (sous dev starts one)"}, nil
	}
	return checkup{"server", verdictFail, err.Error()}, err
}

// checkStore connects to the store and examines it. It writes nothing. It returns the checks
// so far beside an error; findings of examine.LevelFailure together are one error.
func checkStore(ctx context.Context, url string) (checks []checkup, err error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	begin := time.Now()
	s, err := storage.Open(ctx, storage.Config{URL: url}) // Open pings the server
	if err != nil {
		return []checkup{{"store", verdictFail, err.Error()}}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	detail := fmt.Sprintf("answers, first contact took %s", time.Since(begin).Round(time.Microsecond))
	checks = []checkup{{"store", verdictOK, detail}}
	report, err := examine.Servers(ctx, s)
	if err != nil {
		return append(checks, checkup{"store: settings", verdictFail, err.Error()}), err
	}
	var failed []string
	for _, f := range report.Findings {
		c := storeCheckup(f)
		if c.Verdict == verdictFail {
			failed = append(failed, f.Name)
		}
		checks = append(checks, c)
	}
	if len(failed) > 0 {
		return checks, command.ServerFailure(fmt.Errorf("the store does not meet the requirements of docs/storage.md: %s", strings.Join(slices.Compact(failed), ", ")))
	}
	return checks, nil
}

// storeCheckup returns the line of a finding.
func storeCheckup(f examine.Finding) checkup {
	verdict := map[examine.Level]string{
		examine.LevelOK: verdictOK, examine.LevelWarning: verdictWarn, examine.LevelFailure: verdictFail,
	}[f.Level]
	detail := f.Text
	if f.Server != "" {
		detail = f.Server + ": " + detail
	}
	if f.Remedy != "" {
		detail += "; " + f.Remedy
	}
	return checkup{"store: " + f.Name, verdict, detail}
}

// checkConfig reports the configuration file that a server would read in this folder. It does
// not read the file: sous serve refuses a bad one when it starts.
func checkConfig() checkup {
	path, named := server.ConfigFile("")
	if _, err := os.Stat(path); err != nil && !named {
		return checkup{"configuration", verdictOff, "no " + path + " here, SOUS_CONFIG is not set: flags and variables only"}
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return checkup{"configuration", verdictOK, path}
}
