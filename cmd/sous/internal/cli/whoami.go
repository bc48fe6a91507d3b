package cli

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/whoami"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// whoAmI is the JSON form of the output of sous whoami: the target of commands, and what the
// server says about the key.
type whoAmI struct {
	Server    string          `json:"server"`
	Profile   string          `json:"profile,omitempty"` // the one in use; flags and variables may override its fields
	Tenant    string          `json:"tenant"`            // that commands work on
	Namespace string          `json:"namespace"`         // that commands work on
	Caller    whoami.Identity `json:"caller"`
}

// whoamiCommand returns sous whoami.
func (a commands) whoamiCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show the server, the key and its roles, and the tenant and namespace of commands",
		Long: `Show the server, tenant and namespace that commands work on, and the API key that they
send: its id, its name, its roles, where it is valid, and when it expires. The key itself is
never shown.`,
		Example: `  sous whoami
  sous whoami --profile staging -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			id, err := t.Client.WhoAmI(cmd.Context())
			if err != nil {
				return err
			}
			out := whoAmI{Server: t.Client.URL(), Profile: t.ProfileName, Tenant: t.TenantName, Namespace: t.NamespaceName, Caller: id}
			if err := a.Print(out, out.text()); err != nil {
				return err
			}
			switch {
			case id.Tenant != api.AllTenants && id.Tenant != t.TenantName:
				a.Note("the key is for the tenant %s: name it with --tenant or SOUS_TENANT", id.Tenant)
			case id.Namespace != "" && id.Namespace != t.NamespaceName:
				a.Note("the key is for the namespace %s: name it with --namespace or SOUS_NAMESPACE", id.Namespace)
			}
			return nil
		},
	}
	a.RegisterRemote(cmd.Flags())
	return cmd
}

// text returns w as a line for each field.
func (w whoAmI) text() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(label, value string) {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", label, command.Printable(value)) // a strings.Builder takes every write
	}
	line("server", w.Server+" (version "+w.Caller.ServerVersion+")")
	line("profile", cmp.Or(w.Profile, "none"))
	line("tenant", w.Tenant)
	line("namespace", w.Namespace)
	id := w.Caller
	if id.Auth == whoami.AuthOff {
		line("key", "none is needed: the server runs with --auth off")
	} else {
		line("key", id.KeyID)
		line("name", id.Name)
		line("valid for", validity(id))
		expires := "never"
		if id.ExpiresAtMS != 0 {
			expires = command.TimeText(id.ExpiresAtMS)
		}
		line("expires", expires)
	}
	line("roles", strings.Join(id.Roles, ", "))
	_ = table.Flush()
	return b.String()
}

// validity returns the tenants and the namespaces that a key may enter.
func validity(id whoami.Identity) string {
	if id.Tenant == api.AllTenants {
		return "all tenants"
	}
	if id.Namespace == "" {
		return "tenant " + id.Tenant + ", all namespaces"
	}
	return "tenant " + id.Tenant + ", namespace " + id.Namespace
}
