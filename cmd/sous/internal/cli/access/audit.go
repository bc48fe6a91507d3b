package access

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// auditCommand returns sous audit. MADE names what the request created, such as the id of a
// key, or the secret and version that a function read.
func (a commands) auditCommand() *cobra.Command {
	var filter client.AuditFilter
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List the tenant's changes, refused changes and reads of secrets, newest first",
		Example: `  sous audit --action cs:function:publish
  sous audit --refused
  sous audit --sub key_01M7Z2CRKP8HHD15CCTVQJTHWY`,
		Args: cobra.NoArgs,
	}
	a.RegisterRemote(cmd.Flags())
	limit := command.RegisterLimit(cmd)
	cmd.Flags().StringVar(&filter.Action, "action", "", "only this action, such as cs:key:create")
	cmd.Flags().StringVar(&filter.Sub, "sub", "", "only requests of the key with this id, or with the only id that begins or ends so")
	refused := cmd.Flags().Bool("refused", false, "only refused requests; --refused=false leaves them out")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("refused") {
			filter.Refused = refused
		}
		if command.KeyID.Check(filter.Sub) == nil { // else a caller without a key, such as local
			filter.Sub, err = a.Resolve(cmd.Context(), t, command.KeyID, filter.Sub)
			if err != nil {
				return err
			}
		}
		list := func(ctx context.Context, o client.PageOptions) (api.Page[api.AuditEvent], error) {
			return t.Tenant.Audit(ctx, filter, o)
		}
		return command.PrintPages(cmd.Context(), a.App, list, *limit, []string{"TIME", "WHO", "ACTION", "STATUS", "CODE", "COUNT", "PATH", "MADE", "REQUEST"}, func(e api.AuditEvent) []string {
			return []string{command.TimeText(e.AtMS), e.Sub, e.Action, strconv.Itoa(e.Status), cmp.Or(string(e.Code), "-"), strconv.FormatInt(max(e.Count, 1), 10), e.Method + " " + e.Path, cmp.Or(e.Made, "-"), e.RequestID}
		})
	}
	return cmd
}
