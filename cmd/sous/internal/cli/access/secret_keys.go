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
	"github.com/codesous/sous/cmd/sous/internal/server"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/secrets"
)

func (a commands) secretKeygenCommand() *cobra.Command {
	var rotate bool
	cmd := &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a server's key file, or put a new key in front of those that it holds",
		Long: `Make a server's key file (--secrets-key-file), which only its owner may read. It holds
one age identity a line; the first one seals secrets, all of them open. Who has the file and the store
can read every secret; without it nobody can: keep a copy where the store's backups are not.

With --rotate a new key is put in front. Servers take it up within a second;
sous secret rewrap then seals all secrets anew, and the old line can go.`,
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
	cmd.Flags().BoolVar(&rotate, "rotate", false, "put a new key in front of those of a file that exists")
	return cmd
}

func (a commands) secretRewrapCommand() *cobra.Command {
	var store, file string
	cmd := &cobra.Command{
		Use:   "rewrap",
		Short: "Seal anew with the first key what an older one sealed",
		Long: `Seal anew with the first key what an older one sealed. It may be repeated, and says at
the end what was done: once nothing is left that is unreadable, the old key can go from the file.

The server does it for the tenant. With --store it is done here, in the store itself and
for all tenants, with the key file of --secrets-key-file.`,
		Example: `  sous secret rewrap --tenant t_acme01
  sous secret rewrap --store redis://127.0.0.1:6666 --secrets-key-file /etc/sous/secrets.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if store != "" {
				return a.rewrapStore(cmd.Context(), store, cmp.Or(file, os.Getenv("SOUS_SECRETS_KEY_FILE")))
			}
			if file != "" {
				return errors.New("--secrets-key-file stands beside --store: a server has its own")
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			var sum api.RewrapReport
			for cursor := ""; ; cursor = *sum.NextCursor {
				report, err := t.Tenant.RewrapSecrets(cmd.Context(), cursor)
				if err != nil {
					return err
				}
				if add(&sum, report); sum.NextCursor == nil {
					return a.rewrapped(&sum)
				}
				a.Note("%d of %d so far", sum.Rewrapped, sum.Examined)
			}
		},
	}
	cmd.Flags().StringVar(&store, "store", "", "do it here, in this store, for all tenants: "+server.StoreHelp)
	cmd.Flags().StringVar(&file, "secrets-key-file", "", "with --store: the servers' key file (SOUS_SECRETS_KEY_FILE)")
	return cmd
}

func add(sum *api.RewrapReport, report api.RewrapReport) {
	sum.Examined += report.Examined
	sum.Rewrapped += report.Rewrapped
	sum.Unreadable += report.Unreadable
	sum.NextCursor = report.NextCursor
}

// rewrapped prints what was done; secrets that no key opens are a failure.
func (a commands) rewrapped(sum *api.RewrapReport) error {
	text := fmt.Sprintf("%d secrets, %d sealed anew, %d unreadable\n", sum.Examined, sum.Rewrapped, sum.Unreadable)
	if err := a.Print(sum, text); err != nil {
		return err
	}
	if sum.Unreadable > 0 {
		return api.Errorf(api.CodeSecretUnreadable, "%d secrets cannot be opened with the keys of the file: do not take a key out of it", sum.Unreadable)
	}
	return nil
}

// rewrapStore goes through all tenants of a store.
func (a commands) rewrapStore(ctx context.Context, url, file string) (err error) {
	if file == "" {
		return errors.New("--secrets-key-file: say which keys the servers have")
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
	var sum api.RewrapReport
	for after := ""; ; {
		tenants, next, err := storage.NewTenants(s).List(ctx, after, api.MaxPageLimit)
		if err != nil {
			return err
		}
		for _, tenant := range tenants {
			if err := a.rewrapTenant(ctx, s, secrets.New(s, keys), tenant, &sum); err != nil {
				return fmt.Errorf("%s: %w", tenant, err)
			}
		}
		if after = next; after == "" {
			return a.rewrapped(&sum)
		}
	}
}

// rewrapTenant does one tenant, and leaves an event in its audit where there was
// something to do.
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
	if sum.Rewrapped == before {
		return nil
	}
	a.Note("%s: %d sealed anew", tenant, sum.Rewrapped-before)
	return access.NewAudit(s).Append(ctx, tenant, api.AuditEvent{
		AtMS: s.NowMS(), Sub: "local", Action: "cs:secret:rewrap", Method: http.MethodPost,
		Path: "/v1/tenants/" + tenant + "/secrets:rewrap", Status: http.StatusOK, RequestID: api.NewRequestID(s.NowMS()),
	})
}
