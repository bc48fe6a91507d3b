package queue

import "context"

// Within says which of a tenant's jobs exist in a namespace. A job never leaves
// its namespace, so that what is remembered holds.
func (b *Broker) Within(ctx context.Context, tenant, namespace string, ids []string) (map[string]bool, error) {
	in := make(map[string]bool, len(ids))
	var missing []string
	for _, id := range ids {
		if known, ok := b.briefs.GetIfPresent(jobKey{tenant, id}); ok {
			in[id] = known.namespace == namespace
		} else {
			missing = append(missing, id)
		}
	}
	found, err := b.load(ctx, tenant, missing, recordFields)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r != nil {
			in[r.id] = r.spec.Namespace == namespace
			b.briefs.Set(jobKey{tenant, r.id}, briefOf(r.spec, r.run.epoch))
		}
	}
	return in, nil
}
