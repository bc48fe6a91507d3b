package access

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) keysCommand() *cobra.Command {
	// bootstrap calls no server, so only the other commands have the flags that name one.
	commands := []*cobra.Command{a.keysCreateCommand(), a.keysListCommand(), a.keysRevokeCommand()}
	for _, cmd := range commands {
		a.RegisterRemote(cmd.Flags())
	}
	return command.Group("keys", "API keys: who may call a server that runs with --auth keys",
		append(commands, a.keysBootstrapCommand())...)
}

// keysCreateCommand returns sous keys create. The key is valid in --tenant, and in all of its
// namespaces unless --for-namespace names one.
func (a commands) keysCreateCommand() *cobra.Command {
	var k client.NewKey
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an API key of the tenant and print it, once",
		Long: `Create an API key of the tenant and print it on stdout. The server stores only a digest of
it, so it cannot be printed again.`,
		Example: `  sous keys create ci --role developer --expires 720h
  sous keys create shop --role invoker --role role:billing --for-namespace shop`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k.Name = args[0]
			if cmd.Flags().Changed("expires") {
				if expires <= 0 {
					return api.Errorf(api.CodeInvalid, "--expires %s: want more than 0", expires)
				}
				k.ExpiresAtMS = time.Now().Add(expires).UnixMilli()
			}
			// --namespace would be ignored, and the key would be valid for all namespaces.
			if cmd.Flags().Changed("namespace") {
				return api.Errorf(api.CodeInvalid, "--namespace does not limit a key: --for-namespace does")
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			made, err := t.Tenant.CreateKey(cmd.Context(), k)
			if err != nil {
				return err
			}
			a.Note("%s of %s may act as %s. Keep the key, it is shown only now:", made.ID, made.Tenant, keyScope(made.Key))
			return a.Print(made, made.Secret+"\n")
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&k.Roles, "role", nil, "a role of the key: admin, developer, operator, invoker, worker, viewer, or role:NAME with a name that functions require; may be repeated")
	flags.StringVar(&k.Namespace, "for-namespace", "", "the only namespace that the key opens (default: all)")
	flags.DurationVar(&expires, "expires", 0, "how long the key is valid, such as 720h (default: until it is revoked)")
	_ = cmd.MarkFlagRequired("role") // the flag exists
	return cmd
}

// keyScope returns the roles, the namespace and the end of a key as text.
func keyScope(k api.Key) string {
	scope := strings.Join(k.Roles, ", ")
	if k.Namespace != "" {
		scope += " in namespace " + k.Namespace
	}
	if k.ExpiresAtMS != 0 {
		scope += " until " + command.TimeText(k.ExpiresAtMS)
	}
	return scope
}

// keysListCommand returns sous keys list, which shows ids and names: the server has no text
// of a key to show.
func (a commands) keysListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tenant's API keys, oldest first", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Tenant.Keys, *limit, []string{"KEY", "NAME", "ROLES", "NAMESPACE", "CREATED", "EXPIRES", "CREATED BY"}, func(k api.Key) []string {
			return []string{k.ID, k.Name, strings.Join(k.Roles, ","), cmp.Or(k.Namespace, "all"), command.TimeText(k.CreatedAtMS), command.TimeText(k.ExpiresAtMS), k.CreatedBy}
		})
	}
	return cmd
}

// keysRevokeCommand returns sous keys revoke. Its argument is the id of the key, which lists
// show, and not the key. Replicas are notified immediately; one that misses the notice finds
// out within the 5 seconds that the help promises.
func (a commands) keysRevokeCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "End an API key; every replica knows within 5 seconds", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.KeyID.Check(args[0]); err != nil {
				return err
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			id, err := a.Resolve(cmd.Context(), t, command.KeyID, args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Revoke %s?", id)); err != nil {
				return err
			}
			if err := t.Tenant.RevokeKey(cmd.Context(), id); err != nil {
				return err
			}
			a.Note("%s revoked", id)
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}
