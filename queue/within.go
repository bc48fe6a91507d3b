package queue

import "context"

// Within says which of a tenant's jobs exist in a namespace. A job never leaves
// its namespace, so that what is remembered holds.
func (b *Broker) Within(ctx context.Context, tenant, namespace string, ids []string) (map[string]bool, error) {
	return b.which(ctx, tenant, ids, func(known *brief) bool { return known.namespace == namespace })
}

// Settleable says which of a tenant's jobs exist, in a namespace if one is named, and
// are for workers outside to settle: those of fn queues, which no job enters or
// leaves, are the platform's own.
func (b *Broker) Settleable(ctx context.Context, tenant, namespace string, ids []string) (map[string]bool, error) {
	return b.which(ctx, tenant, ids, func(known *brief) bool {
		return (namespace == "" || known.namespace == namespace) && !isFunctionQueue(known.queue)
	})
}

// which says which of a tenant's jobs exist and are such.
func (b *Broker) which(ctx context.Context, tenant string, ids []string, such func(*brief) bool) (map[string]bool, error) {
	in := make(map[string]bool, len(ids))
	var missing []string
	for _, id := range ids {
		if known, ok := b.briefs.GetIfPresent(jobKey{tenant, id}); ok {
			in[id] = such(known)
		} else {
			missing = append(missing, id)
		}
	}
	found, err := b.load(ctx, tenant, missing)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r != nil {
			known := briefOf(r.spec, r.run, r.text)
			in[r.id] = such(known)
			b.remember(jobKey{tenant, r.id}, known)
		}
	}
	return in, nil
}
