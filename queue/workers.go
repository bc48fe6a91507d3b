package queue

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// NoteAlive refreshes the record of a worker that sends heartbeats but does not fetch. It
// ignores workers that have never fetched and, if namespace is not empty, workers of other
// namespaces. Errors: CodeInvalid, CodeStoreUnavailable.
func (b *Broker) NoteAlive(ctx context.Context, tenant, namespace, id string) error {
	return b.workers.NoteAlive(ctx, tenant, namespace, id)
}

// Workers returns a page of a tenant's workers that were alive in the last five minutes, in
// the order of their ids, after the id after. next is the value of after for the next page,
// "" at the end. limit is as in List. Errors: CodeStoreUnavailable.
func (b *Broker) Workers(ctx context.Context, tenant, after string, limit int) (items []api.Worker, next string, err error) {
	ids, err := b.workers.IDs(ctx, tenant)
	if err != nil {
		return nil, "", err
	}
	ids, next = pageOf(ids, after, storage.PageLimit(limit))
	items, err = b.workers.Read(ctx, tenant, ids)
	if err != nil {
		return nil, "", err
	}
	return items, next, nil
}
