package activations

import (
	"context"
	"encoding/json"

	"github.com/codesous/sous/storage"
)

// ReadMany returns activations of a tenant with their results, in the order of ids, nil for those
// that do not exist. Unlike Get it ends no lost one: it writes nothing. The caller bounds the
// number of ids: a record with its result may have 340 KiB. CodeStoreUnavailable.
func (r *Repository) ReadMany(ctx context.Context, tenant string, ids []string) ([]*Record, error) {
	positions := make([]indexPosition, len(ids))
	for i, id := range ids {
		positions[i].id = id
	}
	records, _, err := r.readMany(ctx, tenant, positions)
	if err != nil {
		return nil, err
	}
	var keys []string
	var of []*Record
	for _, a := range records {
		if a != nil && a.ResultBytes > 0 {
			keys, of = append(keys, r.s.Keys().ActivationResult(tenant, a.ActivationID)), append(of, a)
		}
	}
	if len(keys) == 0 {
		return records, nil
	}
	results, err := r.s.GetMany(ctx, keys)
	for i, result := range results {
		of[i].Result = json.RawMessage(result)
	}
	return records, storage.Failure(ctx, "read results", err)
}
