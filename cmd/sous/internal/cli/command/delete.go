package command

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// Deletion describes a command that deletes one resource by its name. It takes no revision:
// the user confirms the name, not a state.
type Deletion struct {
	Use, Short string
	// Noun is the resource in the question, with %s for the name: "schedule %s" asks "Delete
	// schedule nightly?".
	Noun string
	// Done is the resource in the message at the end, with %s for the name; "" for the name
	// alone.
	Done string
	// Find validates the name and returns the call that deletes. It calls no server.
	Find func(name string) (func(ctx context.Context) error, error)
}

// DeleteCommand returns the command that d describes: it validates the name, asks unless --yes
// is set, deletes, and prints a message on stderr.
func (a *App) DeleteCommand(d Deletion) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: d.Use, Short: d.Short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			remove, err := d.Find(args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, "Delete "+fmt.Sprintf(d.Noun, args[0])+"?"); err != nil {
				return err
			}
			if err := remove(cmd.Context()); err != nil {
				return err
			}
			a.Note(cmp.Or(d.Done, "%s")+" deleted", args[0])
			return nil
		},
	}
	RegisterYes(cmd, &yes)
	return cmd
}
