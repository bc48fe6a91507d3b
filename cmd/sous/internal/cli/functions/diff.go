package functions

import (
	"context"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// planned is the JSON form of the output of diff and of deploy --dry-run.
type planned struct {
	Function string   `json:"function"`
	Alias    string   `json:"alias"`
	Running  int64    `json:"running_version"` // 0: nothing runs
	Changes  []change `json:"changes"`
}

// showPlan prints what a deployment would change, one line for each change.
func (a commands) showPlan(ctx context.Context, t *command.Target, d deployment) error {
	p, err := a.plan(ctx, t, d)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(p.headline())
	for _, c := range p.changes {
		b.WriteString("  " + c.text() + "\n")
	}
	return a.Print(p.json(), b.String())
}

func (p *plan) json() planned {
	out := planned{Function: p.name, Alias: p.aliases[0], Changes: p.changes}
	if p.now != nil {
		out.Running = p.now.version.Version
	}
	return out
}

// differs reports whether a deployment would publish a version.
func (p *plan) differs() bool {
	for _, c := range p.changes {
		if c.How != howKept {
			return true
		}
	}
	return p.now == nil
}

// headline returns one line that says what would happen.
func (p *plan) headline() string {
	switch {
	case p.now == nil:
		return fmt.Sprintf("%s: new, %s\n", p.name, command.Plural(len(p.files), "file"))
	case !p.differs():
		return fmt.Sprintf("%s: unchanged, version %d\n", p.name, p.now.version.Version)
	}
	return fmt.Sprintf("%s: changes version %d\n", p.name, p.now.version.Version)
}

// diffCommand returns sous diff.
func (a commands) diffCommand() *cobra.Command {
	var name, alias string
	var outside bool
	cmd := &cobra.Command{
		Use:   "diff [DIR]",
		Short: "Compare a folder with the version of its function that runs",
		Long: `Compare a folder with the version of its function that runs: settings line by line, files
as a unified diff. The exit code is 0 also if they differ.`,
		Example: `  sous diff hello
  sous diff . --alias staging`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := newDeployment(folderOf(args), name, alias)
			if err != nil {
				return err
			}
			d.bundle, d.outside = true, outside
			t, err := a.Target()
			if err != nil {
				return err
			}
			p, err := a.plan(cmd.Context(), t, d)
			if err != nil {
				return err
			}
			text, err := p.unified()
			if err != nil {
				return err
			}
			return a.Print(p.json(), text)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the function's name (default: that of sous.json, else the folder's)")
	cmd.Flags().StringVar(&alias, "alias", "", "the alias whose version to compare with (default: the first of sous.json, else "+api.DefaultAlias+")")
	RegisterAllowOutside(cmd.Flags(), &outside)
	a.RegisterRemote(cmd.Flags())
	return cmd
}

// folderOf returns the folder that the arguments name, by default the current one.
func folderOf(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// unified returns the changes with the contents of the files.
func (p *plan) unified() (string, error) {
	var b strings.Builder
	b.WriteString(p.headline())
	if p.now == nil {
		return b.String(), nil
	}
	for _, c := range p.changes {
		if c.Kind == changeSetting {
			b.WriteString("  " + c.text() + "\n")
		}
	}
	old, fresh, err := p.sources()
	if err != nil {
		return "", err
	}
	for _, c := range p.changes {
		if c.Kind == changeFile {
			version := fmt.Sprintf("version %d/%s", p.now.version.Version, c.Name)
			b.WriteString(printableText(string(diff.Diff(version, old[c.Name], c.Name, fresh[c.Name]))))
		}
	}
	return b.String(), nil
}

// printableText returns the lines of a file without control characters.
func printableText(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		b.WriteString(strings.ReplaceAll(command.Printable(strings.ReplaceAll(line, "\t", "        ")), `\r`, ""))
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
