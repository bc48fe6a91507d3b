package access

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/server"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
)

// bootstrapAction is the action of the audit event of bootstrap, which is no request.
const bootstrapAction = "cs:key:bootstrap"

// keysBootstrapCommand returns sous keys bootstrap, the only command that creates a key
// without having one. Its authorization is the access to the store.
func (a commands) keysBootstrapCommand() *cobra.Command {
	var store string
	var replace bool
	k := api.Key{Roles: []string{api.RoleAdmin}, CreatedBy: "bootstrap"}
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Create the first administrator's key, in the store itself, and print it, once",
		Long: `Create the first administrator's key and print it, as the last line of stdout.

It writes to the store and calls no server: write access to the store is all that it
needs. The key is for the whole platform, or with --tenant for that tenant. If such
an administrator's key exists, the command fails. With --replace it creates a new key
and revokes the existing one, which restores access after a key was lost.`,
		Example: `  sous keys bootstrap --store redis://127.0.0.1:6666
  SOUS_STORE=redis://127.0.0.1:6666 sous keys bootstrap --tenant t_acme01 --name "Ada of Acme"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validateBootstrap(k); err != nil {
				return err
			}
			if warning := server.WarnOfPassword(store); warning != "" {
				a.Note("%s", warning)
			}
			url, err := server.StoreURL(store)
			if err != nil {
				return err
			}
			if url == "" {
				return errors.New("store: name the server's store (--store redis://…, SOUS_STORE, SOUS_STORE_FILE)")
			}
			s, err := storage.Open(cmd.Context(), storage.Config{URL: url})
			if err != nil {
				return fmt.Errorf("store: %w", err)
			}
			return errors.Join(a.bootstrap(cmd.Context(), s, k, replace), s.Close())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&store, "store", "", "the server's store (SOUS_STORE, SOUS_STORE_FILE): "+server.StoreHelp)
	flags.StringVar(&k.Tenant, "tenant", api.AllTenants, "the only tenant that the key opens")
	flags.StringVar(&k.Name, "name", "administrator", "the name of the key in lists")
	flags.BoolVar(&replace, "replace", false, "revoke the existing administrators' keys")
	return cmd
}

func validateBootstrap(k api.Key) error {
	if err := api.ValidateKeyName(k.Name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	if k.Tenant == api.AllTenants {
		return nil
	}
	return api.ValidateTenant(k.Tenant)
}

// bootstrap creates the key k in s and prints its secret text. It fails with
// CodePreconditionFailed if an administrator's key of k.Tenant exists and replace is not set.
// With replace the existing ones are revoked after the new one is stored.
//
// If an existing one cannot be revoked, the new key is printed and the error is returned.
//
// A process that ends after the key was stored and before it was printed leaves a key whose
// text is lost: --replace then creates another.
func (a commands) bootstrap(ctx context.Context, s *storage.Store, k api.Key, replace bool) error {
	text, id, err := api.NewKeySecret(s.NowMS(), rand.Reader)
	if err != nil {
		return err
	}
	k.ID, k.CreatedAtMS = id, s.NowMS()
	stored, replaced, err := access.NewAPIKeys(s).Bootstrap(ctx, k, api.KeyDigest(text), replace)
	var refused *api.Error
	if errors.As(err, &refused) && refused.Code == api.CodePreconditionFailed {
		return api.Errorf(refused.Code, "%s: create further keys with it (sous keys create), or give --replace to revoke it and create another", refused.Message)
	}
	if !stored {
		return err
	}
	for _, old := range replaced {
		a.Note("%s revoked", old)
	}
	if err != nil {
		a.Note("warning: the new key is valid, but not every earlier key is revoked: %v", err)
	}
	a.Note("%s is the administrator's of %s. Keep the key, it is shown only now:", k.ID, tenantText(k.Tenant))
	if printErr := a.Print(api.NewKey{Key: k, Secret: text}, text+"\n"); printErr != nil {
		return errors.Join(err, printErr)
	}
	// The event comes after the key is printed: an error of the audit must not lose the key.
	return errors.Join(err, access.NewAudit(s).Append(ctx, k.Tenant, api.AuditEvent{
		AtMS: k.CreatedAtMS, Sub: "local", Action: bootstrapAction, Method: http.MethodPost,
		Path: "/v1/tenants/" + k.Tenant + "/keys/" + k.ID, Status: http.StatusCreated, RequestID: api.NewRequestID(k.CreatedAtMS),
	}))
}

// tenantText returns the tenant of a key as text: "*" is all tenants.
func tenantText(tenant string) string {
	return strings.Replace(tenant, api.AllTenants, "all tenants", 1)
}
