package main

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func (a *app) auditCommand() *cobra.Command {
	var filter client.AuditFilter
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who changed, or was refused to change, what in the tenant, newest first",
		Example: `  sous audit --action cs:function:publish
  sous audit --sub key_01M7Z2CRKP8HHD15CCTVQJTHWY`,
		Args: cobra.NoArgs,
	}
	a.remote.register(cmd.Flags())
	limit := registerLimit(cmd)
	cmd.Flags().StringVar(&filter.Action, "action", "", "only this action, such as cs:key:create")
	cmd.Flags().StringVar(&filter.Sub, "sub", "", "only what the key of this id asked for")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.target()
		if err != nil {
			return err
		}
		list := func(ctx context.Context, o client.PageOptions) (api.Page[api.AuditEvent], error) {
			return t.tenant.Audit(ctx, filter, o)
		}
		items, more, err := collect(client.All(cmd.Context(), list, client.PageOptions{}), *limit)
		if err != nil {
			return err
		}
		a.noteMore(more)
		return printList(a, items, []string{"TIME", "WHO", "ACTION", "STATUS", "CODE", "PATH", "MADE", "REQUEST"}, func(e api.AuditEvent) []string {
			return []string{timeText(e.AtMS), e.Sub, e.Action, strconv.Itoa(e.Status), cmp.Or(string(e.Code), "-"), e.Method + " " + e.Path, cmp.Or(e.Made, "-"), e.RequestID}
		})
	}
	return cmd
}
