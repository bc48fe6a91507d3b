package documents

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// namespacesCommand returns sous storage namespaces. It has no --limit: the server returns
// all namespaces of an install in one answer.
func (a commands) namespacesCommand(f *ownerFlags) *cobra.Command {
	return &cobra.Command{
		Use: "namespaces", Short: "List an install's namespaces with their use and quotas", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			install, err := a.ownerTarget(f)
			if err != nil {
				return err
			}
			found, err := install.Namespaces(cmd.Context())
			if err != nil {
				return err
			}
			rows := make([][]string, 0, len(found.Items))
			for _, n := range found.Items {
				schema := "-"
				if n.HasSchema {
					schema = "yes"
				}
				rows = append(rows, []string{n.Namespace, partText(n.Use.Records, n.Use.MaxRecords), partText(n.Use.Bytes, n.Use.MaxBytes), schema})
			}
			a.Note("the tenant holds %s records and %s bytes", partText(found.TenantUse.Records, found.TenantUse.MaxRecords), partText(found.TenantUse.Bytes, found.TenantUse.MaxBytes))
			return a.Print(found, command.FittedTable([]string{"NAMESPACE", "RECORDS", "BYTES", "SCHEMA"}, rows, a.Width()))
		},
	}
}

// partText returns used and the quota most; 0 is no quota.
func partText(used, most int64) string {
	if most == 0 {
		return strconv.FormatInt(used, 10)
	}
	return fmt.Sprintf("%d of %d", used, most)
}

// dropCommand returns sous storage drop, which cannot be undone.
func (a commands) dropCommand(f *ownerFlags) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "drop NAMESPACE", Short: "Delete a namespace with its documents and its schema", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			install, err := a.ownerTarget(f)
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Delete namespace %s with all its documents?", args[0])); err != nil {
				return err
			}
			if err := install.DeleteNamespace(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.Note("%s deleted", args[0])
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}

// changesCommand returns sous storage changes. A namespace keeps its last 10,000 changes; if
// those after --since are gone, it notes that and prints what there is. With --follow it
// prints one line for each change, until an interrupt, which is no error.
func (a commands) changesCommand(f *ownerFlags) *cobra.Command {
	var since int64
	var follow bool
	var limit int
	cmd := &cobra.Command{
		Use: "changes NAMESPACE", Short: "Print the changes of a namespace, in their order", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			install, err := a.ownerTarget(f)
			if err != nil {
				return err
			}
			if follow {
				return command.Interrupted(cmd.Context(), install.FollowChanges(cmd.Context(), args[0], since, a.printChange, func() error {
					a.Note("some changes were missed: they are no longer kept")
					return nil
				}))
			}
			found, err := install.Changes(cmd.Context(), args[0], since, limit)
			if err != nil {
				return err
			}
			if found.Reset {
				a.Note("the changes after %d are no longer kept", since)
			}
			return command.PrintList(a.App, found.Items, []string{"ID", "AT", "OP", "KEY", "REVISION"}, changeRow)
		},
	}
	cmd.Flags().Int64Var(&since, "since", 0, "print changes after the one with this id")
	cmd.Flags().IntVar(&limit, "limit", api.DefaultPageLimit, "how many to show, without --follow")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new changes too, until interrupted")
	return cmd
}

// changeRow returns the cells of a change. OP is put, delete or expire.
func changeRow(c api.DocumentChange) []string {
	return []string{strconv.FormatInt(c.ID, 10), command.TimeText(c.At.UnixMilli()), c.Op, c.Key, strconv.FormatInt(c.Revision, 10)}
}

// printChange prints one change of a stream.
func (a commands) printChange(c api.DocumentChange) error {
	return a.PrintLine(c, command.Printable(strings.Join(changeRow(c), "  ")))
}

// schemaCommand returns sous storage schema and its commands. A schema applies to writes from
// then on; documents that are stored already are not examined.
func (a commands) schemaCommand(f *ownerFlags) *cobra.Command {
	return command.Group("schema", "The JSON Schema of a namespace's values",
		&cobra.Command{
			Use: "get NAMESPACE", Short: "Print a namespace's schema", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				install, err := a.ownerTarget(f)
				if err != nil {
					return err
				}
				schema, err := install.Schema(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.Print(schema, string(schema)+"\n")
			},
		},
		&cobra.Command{
			Use: "set NAMESPACE SCHEMA", Short: "Set a namespace's schema: JSON, @FILE, or - for stdin", Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				install, err := a.ownerTarget(f)
				if err != nil {
					return err
				}
				schema, err := command.ReadJSONOperand("SCHEMA", args[1], a.Stdin, api.MaxRequestBytes)
				if err != nil {
					return err
				}
				if err := install.SetSchema(cmd.Context(), args[0], schema); err != nil {
					return err
				}
				a.Note("new values in %s must match the schema", args[0])
				return nil
			},
		},
		&cobra.Command{
			Use: "delete NAMESPACE", Short: "Delete a namespace's schema", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				install, err := a.ownerTarget(f)
				if err != nil {
					return err
				}
				if err := install.DeleteSchema(cmd.Context(), args[0]); err != nil {
					return err
				}
				a.Note("the schema of %s is deleted", args[0])
				return nil
			},
		},
	)
}
