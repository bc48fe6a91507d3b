package queue

import (
	"context"

	"github.com/codesous/sous/api"
)

// NoteAlive keeps a worker in the registry that works and does not fetch meanwhile. A
// worker that never fetched is not entered. If namespace is not empty, a worker of
// another namespace is left as it is. Errors: CodeInvalid, CodeStoreUnavailable.
func (b *Broker) NoteAlive(ctx context.Context, tenant, namespace, id string) error {
	return b.workers.NoteAlive(ctx, tenant, namespace, id)
}

// Workers returns a page of the workers that were alive lately, by id, behind after.
// next is what to pass as after for the rest, "" at the end.
func (b *Broker) Workers(ctx context.Context, tenant, after string, limit int) (items []api.Worker, next string, err error) {
	ids, err := b.workers.IDs(ctx, tenant)
	if err != nil {
		return nil, "", err
	}
	ids, next = pageOf(ids, after, pageLimit(limit))
	items, err = b.workers.Read(ctx, tenant, ids)
	if err != nil {
		return nil, "", err
	}
	return items, next, nil
}
