package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/client"
)

func TestMessagesForWrongCommandLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"deploy":                                "missing DIR\n  usage: sous deploy DIR [flags]",
		"pull":                                  "missing NAME [DIR]\n  usage: sous pull NAME [DIR] [flags]",
		"pull a b c d":                          "unexpected argument c d\n  usage: sous pull NAME [DIR] [flags]",
		"version x":                             "unexpected argument x\n  usage: sous version [flags]",
		"deploy . --alais x":                    "unknown flag: --alais; did you mean --alias?",
		"deploy . --something":                  "unknown flag: --something; see sous deploy --help",
		"deploy . --limit abc":                  `invalid argument "abc" for --limit: want a whole number, such as 3`,
		"deploy . --limit 99999999999999999999": `invalid argument "99999999999999999999" for --limit: the number is too large`,
		"deploy . --in 5":                       `invalid argument "5" for --in: want a number with its unit, such as 30s, 15m or 24h`,
		"deploy . --yes=no":                     `invalid argument "no" for --yes: want true or false`,
		"deploy . --if-version 0":               `invalid argument "0" for --if-version: want a whole number, at least 1`,
		"create":                                "missing --role\n  --role: one of admin, viewer",
		"deploy . -z":                           "unknown shorthand flag: 'z' in -z; see sous deploy --help",
		"deploy . --delay 5s":                   "unknown flag: --delay; did you mean --in?",
		"depoly --other":                        `unknown command "depoly" for "sous"; did you mean deploy?`,
		"publish .":                             `unknown command "publish" for "sous"; did you mean deploy?`,
		"set":                                   `unknown command "set" for "sous"; did you mean secret set?`,
		"secret put":                            `unknown command "put" for "sous secret"; did you mean set?`,
	} {
		run := func(*cobra.Command, []string) error { return nil }
		deploy := &cobra.Command{Use: "deploy DIR", Args: cobra.ExactArgs(1), RunE: run}
		deploy.Flags().String("alias", "", "")
		deploy.Flags().Int("limit", 0, "")
		deploy.Flags().Duration("in", 0, "")
		deploy.Flags().Bool("yes", false, "")
		deploy.Flags().Var(VersionFlag(new(int64)), "if-version", "")
		create := &cobra.Command{Use: "create", Args: cobra.NoArgs, RunE: run}
		create.Flags().String("role", "", "one of admin, viewer")
		if err := create.MarkFlagRequired("role"); err != nil {
			t.Fatalf("MarkFlagRequired: %v", err)
		}
		root := &cobra.Command{Use: "sous", SilenceErrors: true, SilenceUsage: true, Args: NoSuchCommand, RunE: ShowHelp}
		root.AddCommand(Group("secret", "", &cobra.Command{Use: "set NAME", RunE: run}))
		root.AddCommand(deploy, create, &cobra.Command{Use: "pull NAME [DIR]", Args: cobra.RangeArgs(1, 2), RunE: run},
			&cobra.Command{Use: "version", Args: cobra.NoArgs, RunE: run})
		root.SetFlagErrorFunc(FlagError)
		ExplainArguments(root)
		root.SetArgs(strings.Fields(line))
		cmd, err := root.ExecuteC()
		if err == nil {
			t.Fatalf("sous %s: got no error, want %s", line, want)
		}
		if got := MissingFlags(cmd, err).Error(); got != want {
			t.Errorf("sous %s: got %s, want %s", line, got, want)
		}
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"nofile does not exist":                    &fs.PathError{Op: "stat", Path: "nofile", Err: syscall.ENOENT},
		"--payload: nofile does not exist":         fmt.Errorf("--payload: %w", &fs.PathError{Op: "open", Path: "nofile", Err: syscall.ENOENT}),
		"settings: f.yaml does not exist":          fmt.Errorf("settings: f.yaml: %w", &fs.PathError{Op: "open", Path: "f.yaml", Err: syscall.ENOENT}),
		"--value-file: this user may not open key": fmt.Errorf("--value-file: %w", &fs.PathError{Op: "open", Path: "key", Err: syscall.EACCES}),
		"d is a folder, want a file":               &fs.PathError{Op: "read", Path: "d", Err: syscall.EISDIR},
		"f: no space left on device":               &fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC},
	} {
		if got := describe(err).Message; got != want {
			t.Errorf("describe(%v): got %q, want %q", err, got, want)
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
