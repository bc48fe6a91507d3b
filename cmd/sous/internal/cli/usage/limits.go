package usage

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) limitsCommand() *cobra.Command {
	return a.RemoteGroup("limits", "Limits of the tenant", a.limitsGetCommand(), a.limitsSetCommand())
}

func (a commands) limitsGetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get", Short: "Show the limits of the tenant", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Tenant.Limits(cmd.Context())
			if err != nil {
				return err
			}
			return a.Print(found, limitsText(&found))
		},
	}
}

func (a commands) limitsSetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME=VALUE...", Short: "Set limits of the tenant; the others stay as they are", Args: cobra.MinimumNArgs(1),
		Long: `Set limits of the tenant; the others stay as they are. It needs a key of all tenants.

A value of 0 stands for the limit of the server, and -1 for none.`,
		Example: `  sous limits set kv_bytes=2147483648 calls_per_second=500
  sous limits set functions=0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			before, err := t.Tenant.Limits(cmd.Context())
			if err != nil {
				return err
			}
			limits := before.Set
			for _, arg := range args {
				name, text, ok := strings.Cut(arg, "=")
				n, err := strconv.ParseInt(text, 10, 64)
				if !ok || err != nil {
					return fmt.Errorf("%q: want NAME=NUMBER", arg)
				}
				if !limits.Set(name, n) {
					return fmt.Errorf("%q: the limits are %s", arg, strings.Join(quota.TenantLimitNames(), ", "))
				}
			}
			made, err := t.Tenant.SetLimits(cmd.Context(), limits)
			if err != nil {
				return err
			}
			return a.Print(made, limitsText(&made))
		},
	}
}

// limitsText returns the limits in force as a table, which marks those that were set.
func limitsText(s *quota.TenantLimitsStatus) string {
	var rows [][]string
	for _, name := range quota.TenantLimitNames() {
		n, _ := s.Limits.Get(name)
		by := "server"
		if set, _ := s.Set.Get(name); set != 0 {
			by = "tenant"
		}
		rows = append(rows, []string{name, limitText(n), by})
	}
	return command.Table([]string{"LIMIT", "VALUE", "SET FOR"}, rows)
}
