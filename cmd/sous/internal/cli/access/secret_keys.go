package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/cmd/sous/internal/server"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/webhooks"
)

// secretKeygenCommand returns sous secret keygen. It prints the fingerprint of the new key,
// by which the records of secrets name the key that sealed them, and never the key.
func (a commands) secretKeygenCommand() *cobra.Command {
	var rotate bool
	cmd := &cobra.Command{
		Use:   "keygen FILE",
		Short: "Create a server's key file, or add a new first key to it",
		Long: `Create a server's key file (--secrets-key-file), with mode 0600. It holds one age
identity a line; the first one seals secrets, all of them open secrets. The file and the
store together are enough to read every secret, and without the file no secret can be
read: keep a copy of it apart from the store's backups.

With --rotate a new key becomes the first one. Servers read it within a second; then
sous secret rewrap reseals all secrets, and the old line can be removed.`,
		Example: `  sous secret keygen /etc/sous/secrets.key
  sous secret keygen --rotate /etc/sous/secrets.key`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			generate, what := secrets.Keygen, "made"
			if rotate {
				generate, what = secrets.Rotate, "put in front"
			}
			mark, err := generate(args[0], time.Now())
			if err != nil {
				return err
			}
			a.Note("key %s %s in %s", mark, what, args[0])
			return a.Print(map[string]string{"file": args[0], "key": mark}, mark+"\n")
		},
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "add a new first key to a file that exists")
	return cmd
}

// secretRewrapCommand returns sous secret rewrap. Each request seals a bounded number of
// secrets and returns a cursor, so that a tenant with many secrets needs no long request.
// An interrupted command leaves every secret readable and can be repeated.
func (a commands) secretRewrapCommand() *cobra.Command {
	var store, file string
	cmd := &cobra.Command{
		Use:   "rewrap",
		Short: "Reseal with the first key the secrets that older keys sealed",
		Long: `Reseal with the first key the secrets that older keys sealed. The command prints how many
secrets it resealed and how many it could not open, and may be repeated. Once it reports
0 resealed and 0 unreadable, the old keys can be removed from the file.

The server reseals the secrets of the tenant. With --store this process does it, in the
store itself and for all tenants, with the key file of --secrets-key-file.`,
		Example: `  sous secret rewrap --tenant t_acme01
  sous secret rewrap --store redis://127.0.0.1:6666 --secrets-key-file /etc/sous/secrets.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if warning := server.WarnOfPassword(store); warning != "" {
				a.Note("%s", warning)
			}
			if store != "" {
				return a.rewrapStore(cmd.Context(), store, cmp.Or(file, os.Getenv("SOUS_SECRETS_KEY_FILE")))
			}
			if file != "" {
				return errors.New("--secrets-key-file needs --store: a server has its own key file")
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			var sum api.RewrapReport
			for cursor := ""; ; cursor = *sum.NextCursor {
				var report api.RewrapReport
				err := a.Working("resealing", func() (err error) {
					report, err = t.Tenant.RewrapSecrets(cmd.Context(), cursor)
					return err
				})
				if err != nil {
					return err
				}
				add(&sum, report)
				if sum.NextCursor == nil {
					return a.rewrapped(&sum)
				}
				a.Note("%d of %d so far", sum.Rewrapped, sum.Examined)
			}
		},
	}
	cmd.Flags().StringVar(&store, "store", "", "reseal in this store itself, for all tenants: "+server.StoreHelp)
	cmd.Flags().StringVar(&file, "secrets-key-file", "", "with --store: the servers' key file (SOUS_SECRETS_KEY_FILE)")
	return cmd
}

// add adds the counts of report to sum, and takes its cursor.
func add(sum *api.RewrapReport, report api.RewrapReport) {
	sum.Examined += report.Examined
	sum.Rewrapped += report.Rewrapped
	sum.Unreadable += report.Unreadable
	sum.NextCursor = report.NextCursor
}

// rewrapped prints the counts. It fails with CodeSecretUnreadable if no key opens some of the
// secrets: removing a key from the file could then lose them.
func (a commands) rewrapped(sum *api.RewrapReport) error {
	text := fmt.Sprintf("%s, %d resealed, %d unreadable\n", command.Plural(sum.Examined, "secret"), sum.Rewrapped, sum.Unreadable)
	if err := a.Print(sum, text); err != nil {
		return err
	}
	if sum.Unreadable > 0 {
		return api.Errorf(api.CodeSecretUnreadable, "%s cannot be opened with the keys of the file: do not remove a key from it", command.Plural(sum.Unreadable, "secret"))
	}
	return nil
}

// rewrapStore seals the secrets of all tenants of the store at url with the first key of
// file. Servers may run on the store meanwhile. It stops at the first tenant that fails.
func (a commands) rewrapStore(ctx context.Context, url, file string) (err error) {
	if file == "" {
		return errors.New("--secrets-key-file: name the key file of the servers")
	}
	keys, err := secrets.OpenKeyFile(file, zap.NewNop())
	if err != nil {
		return err
	}
	s, err := storage.Open(ctx, storage.Config{URL: url})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	tenants, err := secretTenants(ctx, s)
	if err != nil {
		return err
	}
	var sum api.RewrapReport
	for tenant := range tenants {
		if err := a.rewrapTenant(ctx, s, secrets.New(s, keys), tenant, &sum); err != nil {
			return fmt.Errorf("%s: %w", tenant, err)
		}
	}
	return a.rewrapped(&sum)
}

// secretTenants returns the tenants that may have secrets: those with namespaces, and those with
// webhooks.
func secretTenants(ctx context.Context, s *storage.Store) (map[string]struct{}, error) {
	out := map[string]struct{}{}
	for after, more := "", true; more; more = after != "" {
		tenants, next, err := storage.NewTenants(s).List(ctx, after, api.MaxPageLimit)
		if err != nil {
			return nil, err
		}
		for _, tenant := range tenants {
			out[tenant] = struct{}{}
		}
		after = next
	}
	tenants, err := webhooks.New(s, nil).Tenants(ctx)
	for _, tenant := range tenants {
		out[tenant] = struct{}{}
	}
	return out, err
}

// rewrapTenant seals the secrets of one tenant. If it sealed some, it appends an event to
// the tenant's audit.
func (a commands) rewrapTenant(ctx context.Context, s *storage.Store, kept *secrets.Secrets, tenant string, sum *api.RewrapReport) error {
	before := sum.Rewrapped
	for after, more := "", true; more; more = after != "" {
		report, next, err := kept.Rewrap(ctx, tenant, after)
		if err != nil {
			return err
		}
		add(sum, report)
		after = next
	}
	if err := webhooks.New(s, kept).Rewrap(ctx, tenant, sum); err != nil {
		return err
	}
	if sum.Rewrapped == before {
		return nil
	}
	a.Note("%s: %d resealed", tenant, sum.Rewrapped-before)
	return access.NewAudit(s).Append(ctx, tenant, api.AuditEvent{
		AtMS: s.NowMS(), Sub: "local", Action: "cs:secret:rewrap", Method: http.MethodPost,
		Path: "/v1/tenants/" + tenant + "/secrets:rewrap", Status: http.StatusOK, RequestID: api.NewRequestID(s.NowMS()),
	})
}
