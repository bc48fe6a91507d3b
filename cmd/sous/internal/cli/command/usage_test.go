package command

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/client"
)

func TestMessagesForWrongCommandLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"deploy":               "missing DIR\n  usage: sous deploy DIR [flags]",
		"pull":                 "missing NAME [DIR]\n  usage: sous pull NAME [DIR] [flags]",
		"pull a b c d":         "unexpected argument c d\n  usage: sous pull NAME [DIR] [flags]",
		"version x":            "unexpected argument x\n  usage: sous version [flags]",
		"deploy . --alais x":   "unknown flag: --alais; did you mean --alias?",
		"deploy . --something": "unknown flag: --something; see sous deploy --help",
		"deploy . -z":          "unknown shorthand flag: 'z' in -z",
	} {
		run := func(*cobra.Command, []string) error { return nil }
		deploy := &cobra.Command{Use: "deploy DIR", Args: cobra.ExactArgs(1), RunE: run}
		deploy.Flags().String("alias", "", "")
		root := &cobra.Command{Use: "sous", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(deploy, &cobra.Command{Use: "pull NAME [DIR]", Args: cobra.RangeArgs(1, 2), RunE: run},
			&cobra.Command{Use: "version", Args: cobra.NoArgs, RunE: run})
		root.SetFlagErrorFunc(UnknownFlag)
		ExplainArguments(root)
		root.SetArgs(strings.Fields(line))
		if err := root.Execute(); err == nil || err.Error() != want {
			t.Errorf("sous %s: got %v, want %s", line, err, want)
		}
	}
}

func TestUnreachableServerIsExplained(t *testing.T) {
	t.Parallel()
	for want, cause := range map[string]error{
		`start one with "sous dev", or name another one with --url or SOUS_URL`: fmt.Errorf("dial: %w", syscall.ECONNREFUSED),
		"the server is named by --url, SOUS_URL or the profile in use":          errors.New("no such host"),
	} {
		var out bytes.Buffer
		(&App{Stderr: &out, Output: FormatText}).Report(fmt.Errorf("x: %w", &client.UnreachableError{URL: "http://a", Err: cause}))
		if !strings.Contains(out.String(), want) {
			t.Errorf("Report of %v: got %q, want it to contain %q", cause, out.String(), want)
		}
	}
}
