package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage"
)

// The verdicts of a check.
const (
	verdictOK   = "ok"
	verdictOff  = "off"  // a layer that this host does not offer; others hold
	verdictFail = "fail" // functions cannot run, or what was asked for is not there
)

// checkup is one line of sous doctor.
type checkup struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail"`
}

// doctorTimeout bounds each check.
const doctorTimeout = 10 * time.Second

func (a *app) doctorCommand() *cobra.Command {
	var store string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine, a server and a store have to offer",
		Long: `Say what this machine, a server and a store have to offer.

It starts a sandbox and says which of its layers are active here (an inactive one
is a defence less, not an error), asks the server for its readiness, and the store
where --store or SOUS_STORE names one. The exit code is 1 where a check fails, 2
where only the server or the store does.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks, sandboxErr := checkSandbox(cmd.Context())
			served, remoteErr := a.checkServer(cmd.Context())
			checks = append(checks, served)
			if url := cmp.Or(store, os.Getenv(envPrefix+"STORE")); url != "" {
				c, err := checkStore(cmd.Context(), url)
				checks, remoteErr = append(checks, c), errors.Join(remoteErr, err)
			}
			checks = append(checks, checkConfig())
			err := printList(a, checks, []string{"CHECK", "VERDICT", "DETAIL"}, func(c checkup) []string {
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
	a.remote.register(cmd.Flags())
	cmd.Flags().StringVar(&store, "store", "", "ask this store too (SOUS_STORE): "+storeHelp)
	return cmd
}

// checkSandbox starts a child and tells what confines it.
func checkSandbox(ctx context.Context) ([]checkup, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	executable, closeExecutable, err := sandboxExecutable()
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

// checkServer asks the target for its readiness. That none runs at the default
// address is no failure: nobody named it.
func (a *app) checkServer(ctx context.Context) (checkup, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	t, err := a.target()
	if err != nil {
		return checkup{"server", verdictFail, err.Error()}, err
	}
	err = t.client.Ready(ctx)
	switch {
	case err == nil:
		return checkup{"server", verdictOK, t.client.URL() + " is ready"}, nil
	case t.client.URL() == defaultURL && a.remote.url == "" && os.Getenv("SOUS_URL") == "":
		return checkup{"server", verdictOff, err.Error() + " (sous dev starts one)"}, nil
	}
	return checkup{"server", verdictFail, err.Error()}, err
}

func checkStore(ctx context.Context, url string) (c checkup, err error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	begin := time.Now()
	s, err := storage.Open(ctx, storage.Config{URL: url}) // it pings
	if err != nil {
		return checkup{"store", verdictFail, err.Error()}, err
	}
	detail := fmt.Sprintf("answers, first contact took %s", time.Since(begin).Round(time.Microsecond))
	return checkup{"store", verdictOK, detail}, s.Close()
}

// checkConfig tells which configuration file a server would read here.
func checkConfig() checkup {
	path := os.Getenv(envPrefix + "CONFIG")
	if path == "" {
		if _, err := os.Stat(defaultConfigFile); err != nil {
			return checkup{"configuration", verdictOff, "no " + defaultConfigFile + " here, SOUS_CONFIG is not set: flags and variables only"}
		}
		path = defaultConfigFile
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return checkup{"configuration", verdictOK, path}
}
