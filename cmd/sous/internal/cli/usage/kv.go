package usage

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) kvCommand() *cobra.Command {
	return a.RemoteGroup("kv", "Keys that functions keep by cs.kv", a.kvListCommand(), a.kvGetCommand(), a.kvDeleteCommand())
}

func (a commands) kvListCommand() *cobra.Command {
	prefix := ""
	cmd := &cobra.Command{Use: "list", Short: "List the namespace's keys, without their values", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		list := func(ctx context.Context, o client.PageOptions) (api.Page[api.KVEntry], error) {
			return t.Namespace.KV(ctx, prefix, o)
		}
		return command.PrintPages(cmd.Context(), a.App, list, *limit, []string{"KEY", "BYTES", "EXPIRES"}, func(e api.KVEntry) []string {
			expires := "-"
			if e.ExpiresAtMS > 0 {
				expires = command.TimeText(e.ExpiresAtMS)
			}
			return []string{command.Printable(e.Key), strconv.FormatInt(e.Bytes, 10), expires}
		})
	}
	return cmd
}

func (a commands) kvGetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get KEY", Short: "Show the value of a key", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Namespace.KVValue(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.PrintLine(found, string(found.Value))
		},
	}
}

func (a commands) kvDeleteCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "delete KEY", Short: "Delete a key", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Delete key %q?", args[0])); err != nil {
				return err
			}
			if err := t.Namespace.DeleteKV(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.Note("deleted %q", args[0])
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}
