package webhooks

import (
	"context"
	"regexp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage"
)

// fieldAttempt is the field of an entry of the log.
const fieldAttempt = "attempt"

// entryID matches the id of an entry of the log.
var entryID = regexp.MustCompile(`^[0-9]{1,19}-[0-9]{1,19}$`)

// Deliveries returns a page of the attempts of a webhook, the latest first, before the entry after.
// next is "" at the end. CodeWebhookNotFound, CodeValidationCursor.
func (r *Repository) Deliveries(ctx context.Context, tenant, name, after string, limit int) (items []webhook.Delivery, next string, err error) {
	rec, _, err := r.read(ctx, tenant, name)
	if err != nil {
		return nil, "", err
	}
	if rec == nil {
		return nil, "", notFound(name)
	}
	from := "+"
	if after != "" {
		if !entryID.MatchString(after) {
			return nil, "", api.Errorf(api.CodeValidationCursor, "the cursor is not that of a delivery")
		}
		from = "(" + after
	}
	limit = storage.PageLimit(limit)
	entries, err := storage.StreamEntries(r.s.Client().Do(ctx, "XREVRANGE", r.s.Keys().Webhook(tenant, rec.ID).Log(), from, "-", "COUNT", limit+1))
	if err != nil {
		return nil, "", storage.Failure(ctx, "list deliveries", err)
	}
	if len(entries) > limit {
		entries, next = entries[:limit], entries[limit-1].ID
	}
	items = make([]webhook.Delivery, len(entries))
	for i := range entries {
		items[i], err = attemptOf(&entries[i])
		if err != nil {
			return nil, "", err
		}
	}
	return items, next, nil
}

// Attempt returns an attempt of a webhook. CodeWebhookNotFound, CodeDeliveryNotFound.
func (r *Repository) Attempt(ctx context.Context, tenant, name, entry string) (webhook.Delivery, error) {
	rec, _, err := r.read(ctx, tenant, name)
	if err == nil && rec == nil {
		err = notFound(name)
	}
	if err != nil {
		return webhook.Delivery{}, err
	}
	missing := api.Errorf(api.CodeDeliveryNotFound, "webhook %q has no delivery %q in its log", name, entry)
	if !entryID.MatchString(entry) {
		return webhook.Delivery{}, missing
	}
	entries, err := storage.StreamEntries(r.s.Client().Do(ctx, "XRANGE", r.s.Keys().Webhook(tenant, rec.ID).Log(), entry, entry))
	if err != nil {
		return webhook.Delivery{}, storage.Failure(ctx, "read delivery", err)
	}
	if len(entries) == 0 {
		return webhook.Delivery{}, missing
	}
	return attemptOf(&entries[0])
}

// attemptOf decodes an entry of the log.
func attemptOf(e *storage.StreamEntry) (webhook.Delivery, error) {
	d, err := storage.Decode[webhook.Delivery](e.Fields[fieldAttempt])
	d.ID = e.ID
	return d, err
}
