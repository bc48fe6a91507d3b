package bulk

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage/statestore"
)

// creationMS is how long the record of an operation may be missing after its slot was taken or its
// mark was made. A creation that takes longer has died.
const creationMS = 60_000

// takeSlot takes one of the tenant's slots for an operation that will run. A slot whose operation has
// ended, or was never created, is taken over. Errors: CodeBulkLimit, CodeStoreUnavailable.
func (o *Operations) takeSlot(ctx context.Context, tenant, id string) error {
	key := o.store.Keys().Bulk(tenant, partSlots)
	held, err := o.slots.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("take a slot: %w", err)
	}
	taken := []byte(id + " " + strconv.FormatInt(o.store.NowMS(), 10))
	for n := range search.MaxBulkRunning {
		field := strconv.Itoa(n)
		var before []byte
		if held != nil {
			before = held.Fields[field]
		}
		free, err := o.isFree(ctx, tenant, id, string(before))
		if err != nil {
			return err
		}
		if !free {
			continue
		}
		done, err := o.slots.CompareAndSet(ctx, key, statestore.Fields{field: before}, statestore.Fields{field: taken})
		if err != nil {
			return fmt.Errorf("take a slot: %w", err)
		}
		if done {
			return nil
		}
	}
	return api.Errorf(api.CodeBulkLimit, "limit of %d running bulk operations reached: wait for one, or cancel it", search.MaxBulkRunning)
}

// isFree reports whether the slot with a value may be taken for id.
func (o *Operations) isFree(ctx context.Context, tenant, id, value string) (bool, error) {
	holder, since, _ := strings.Cut(value, " ")
	if holder == "" || holder == id {
		return true, nil
	}
	found, err := o.read(ctx, tenant, holder)
	if err != nil {
		return false, err
	}
	if found != nil {
		return found.State != search.BulkRunning, nil
	}
	at, err := strconv.ParseInt(since, 10, 64)
	return err != nil || at+creationMS < o.store.NowMS(), nil //nolint:nilerr // a damaged slot is free
}

// freeSlot frees the slot of an operation.
func (o *Operations) freeSlot(ctx context.Context, tenant, id string) error {
	key := o.store.Keys().Bulk(tenant, partSlots)
	held, err := o.slots.Get(ctx, key)
	if err != nil || held == nil {
		return err
	}
	for field, value := range held.Fields {
		if strings.HasPrefix(string(value), id+" ") {
			if _, err := o.slots.CompareAndSet(ctx, key, statestore.Fields{field: value}, statestore.Fields{field: nil}); err != nil {
				return fmt.Errorf("free a slot: %w", err)
			}
		}
	}
	return nil
}
