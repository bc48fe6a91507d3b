package webhooks

import (
	"context"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
)

// sealedKind names the kind of record in the sealed text.
const sealedKind = "webhook"

// secret is a signing secret in its stored form.
type secret struct {
	secrets.Sealed
	Serial  int64 `json:"serial"`             // distinguishes the secrets of a webhook
	UntilMS int64 `json:"until_ms,omitempty"` // when a previous secret ends
}

// addSecret makes a new secret the current one of next, seals it, and returns its text.
// CodeSecretKeyMissing.
func (r *Repository) addSecret(tenant string, next *Record) (string, error) {
	serial := int64(1)
	if len(next.Secrets) > 0 {
		serial = next.Secrets[0].Serial + 1
	}
	text := webhook.NewSecret()
	sealed, err := r.secrets.Seal(sealedKind, pathOf(tenant, next.ID, serial), []byte(text))
	if err != nil {
		return "", err
	}
	kept := []secret{{Sealed: sealed, Serial: serial}}
	if len(next.Secrets) > 0 {
		previous := next.Secrets[0]
		previous.UntilMS = r.s.NowMS() + webhook.PreviousSecretMS
		kept = append(kept, previous)
	}
	next.Secrets = kept
	return text, nil
}

// pathOf names a secret in the text that is sealed with it.
func pathOf(tenant, id string, serial int64) []string {
	return []string{tenant, id, strconv.FormatInt(serial, 10)}
}

// Rotate makes a new secret for a webhook, which is in the result. The one before stays valid for
// webhook.PreviousSecretMS; the one before that ends. CodeWebhookNotFound, CodePreconditionFailed,
// CodeSecretKeyMissing.
func (r *Repository) Rotate(ctx context.Context, tenant, name string, ifMatch *int64) (webhook.Webhook, error) {
	return r.write(ctx, tenant, name, Condition{IfMatch: ifMatch}, func(held *Record) (next Record, text string, err error) {
		if held == nil {
			return next, "", notFound(name)
		}
		next = *held
		text, err = r.addSecret(tenant, &next)
		return next, text, err
	})
}

// Keys returns the secrets that sign the deliveries of a webhook now, the current one first.
// CodeSecretKeyMissing, CodeSecretUnreadable.
func (r *Repository) Keys(tenant string, rec *Record) ([]string, error) {
	var out []string
	for _, s := range rec.Secrets {
		if s.UntilMS != 0 && s.UntilMS <= r.s.NowMS() {
			continue
		}
		text, err := r.secrets.Open(sealedKind, pathOf(tenant, rec.ID, s.Serial), s.Sealed)
		if err != nil {
			return nil, err
		}
		out = append(out, string(text))
		clear(text)
	}
	return out, nil
}

// Rewrap seals the secrets of a tenant's webhooks with the first identity of the key file, where
// another one sealed them, and counts them in report. It may be repeated. CodeSecretKeyMissing.
func (r *Repository) Rewrap(ctx context.Context, tenant string, report *api.RewrapReport) error {
	all, err := r.All(ctx, tenant)
	if err != nil {
		return err
	}
	for i := range all {
		if err := r.rewrap(ctx, tenant, all[i].Name, report); err != nil {
			return err
		}
	}
	return nil
}

// rewrap seals the secrets of one webhook. Where it changes meanwhile, it is read again.
func (r *Repository) rewrap(ctx context.Context, tenant, name string, report *api.RewrapReport) error {
	var done api.RewrapReport
	err := storage.RetryConflicts(ctx, func() error {
		rec, raw, err := r.read(ctx, tenant, name)
		if err != nil || rec == nil {
			return err
		}
		done = api.RewrapReport{}
		for i := range rec.Secrets {
			s := &rec.Secrets[i]
			done.Examined++
			resealed, changed, err := r.secrets.Reseal(sealedKind, pathOf(tenant, rec.ID, s.Serial), s.Sealed)
			if api.ErrorCode(err) == api.CodeSecretUnreadable {
				done.Unreadable++
				continue
			}
			if err != nil {
				return err
			}
			if changed {
				s.Sealed = resealed
				done.Rewrapped++
			}
		}
		if done.Rewrapped == 0 {
			return nil
		}
		return r.put(ctx, tenant, name, raw, rec)
	})
	report.Examined += done.Examined
	report.Rewrapped += done.Rewrapped
	report.Unreadable += done.Unreadable
	return err
}
