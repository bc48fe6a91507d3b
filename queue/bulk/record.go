package bulk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/statestore/kvrocks"
)

// The fields of a record. revision increases with each write, which compares it.
const (
	fieldRevision = "revision"
	fieldDoc      = "doc"   // the record as JSON
	fieldOrder    = "order" // of lists: the negative time of the creation
)

// The parts of the keys of a tenant.
const (
	partRecord = "op:" // followed by the id
	partIndex  = "index"
	partSlots  = "slots"
)

// index is the index of the lists: newest first.
func index(keys storage.Keys) kvrocks.Index {
	prefix := strings.Join(strings.Split(keys.Bulk("", ""), ":")[:2], ":") + ":" // of all tenants
	return kvrocks.Index{Prefix: prefix, Field: fieldOrder, Key: func(text string) string {
		parts := strings.SplitN(text, ":", 4)
		if len(parts) < 4 {
			return ""
		}
		tenant := strings.Trim(parts[2], "{}")
		if tenant == "" || !strings.HasPrefix(text, keys.Bulk(tenant, partRecord)) {
			return ""
		}
		return keys.Bulk(tenant, partIndex)
	}}
}

// record is a stored operation.
type record struct {
	search.Bulk

	Revision int64  `json:"revision"`
	Digest   string `json:"digest"`           // of the call that created it
	Cursor   string `json:"cursor,omitempty"` // of the mirror, behind the jobs that were examined
	Recent   []seen `json:"recent,omitempty"` // the examined jobs shortly before the cursor
	Stalls   int    `json:"stalls,omitempty"` // searches in a row that took too long
	tenant   string
}

// seen is a job that was examined, with its row by mirror.RowOf.
type seen struct {
	ID  string `json:"id"`
	Row int64  `json:"row"`
}

// newRecord returns the record that a call creates, without its time.
func newRecord(tenant, key string, n *search.NewBulk) (*record, error) {
	id := api.NewJobID()
	if key != "" {
		id = api.DerivedJobID("bulk", tenant, n.Selection.Namespace, key)
	}
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("encode a bulk operation: %w", err)
	}
	sum := sha256.Sum256(text)
	return &record{
		Bulk: search.Bulk{
			ID: id, Operation: n.Operation, Selection: n.Selection, Target: n.Target, Limit: n.Limit, State: search.BulkRunning,
		},
		Revision: 1, Digest: hex.EncodeToString(sum[:]), tenant: tenant,
	}, nil
}

// member is the member of the due set.
func (r *record) member() string {
	return r.tenant + "/" + r.ID + "/" + strconv.FormatInt(r.CreatedAtMS, 10)
}

// fields returns the stored fields.
func (r *record) fields() (statestore.Fields, error) {
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a bulk operation: %w", err)
	}
	return statestore.Fields{
		fieldRevision: strconv.AppendInt(nil, r.Revision, 10), fieldDoc: doc, fieldOrder: strconv.AppendInt(nil, -r.CreatedAtMS, 10),
	}, nil
}

func parse(tenant string, stored statestore.Record) (*record, error) {
	r := &record{tenant: tenant}
	if err := json.Unmarshal(stored.Fields[fieldDoc], r); err != nil {
		return nil, api.Wrap(api.CodeInternal, err, "the record of a bulk operation of "+tenant+" is damaged")
	}
	return r, nil
}

func (o *Operations) key(tenant, id string) string {
	return o.store.Keys().Bulk(tenant, partRecord) + id
}

// read returns a record, nil if it does not exist.
func (o *Operations) read(ctx context.Context, tenant, id string) (*record, error) {
	if err := api.ValidateJobID(id); err != nil {
		return nil, NotFound(id)
	}
	found, err := o.states.Get(ctx, o.key(tenant, id))
	if err != nil {
		return nil, fmt.Errorf("read a bulk operation: %w", err)
	}
	if found == nil || found.Fields[fieldDoc] == nil {
		return nil, nil //nolint:nilnil // documented: there is none
	}
	r, err := parse(tenant, *found)
	if err == nil && r.State != search.BulkRunning && found.TTL == 0 {
		err = o.retire(ctx, r) // a crash left it to the next reader
	}
	return r, err
}

// write replaces r by after if it has not changed since it was read, and reports whether it did. An
// operation that has ended leaves the due set and its slot, and expires.
func (o *Operations) write(ctx context.Context, r, after *record) (bool, error) {
	after.Revision, after.UpdatedAtMS = r.Revision+1, max(o.store.NowMS(), r.UpdatedAtMS)
	fields, err := after.fields()
	if err != nil {
		return false, err
	}
	done, err := o.states.CompareAndSet(ctx, o.key(r.tenant, r.ID), statestore.Fields{fieldRevision: strconv.AppendInt(nil, r.Revision, 10)}, fields)
	if err != nil {
		return false, fmt.Errorf("change a bulk operation: %w", err)
	}
	if done && after.State != search.BulkRunning {
		return true, o.retire(ctx, after)
	}
	return done, nil
}

// retire removes what only operations that run have, and lets the record of an ended one expire.
func (o *Operations) retire(ctx context.Context, r *record) error {
	if err := o.freeSlot(ctx, r.tenant, r.ID); err != nil {
		return err
	}
	if err := o.store.Client().ZRem(ctx, storage.KeyBulkDue, r.member()).Err(); err != nil {
		return storage.Failure(ctx, "end a bulk operation", err)
	}
	return o.states.Expire(ctx, o.key(r.tenant, r.ID), search.BulkRetentionMS*time.Millisecond)
}

// position is a place in the list of operations.
type position struct {
	order int64
	id    string
}

func (p position) String() string { return strconv.FormatInt(p.order, 10) + ":" + p.id }

// before reports whether other is behind p. The zero position is before all.
func (p position) before(other position) bool {
	return p.id == "" || cmp.Or(cmp.Compare(p.order, other.order), strings.Compare(p.id, other.id)) < 0
}

// parsePosition parses a position, the first one for "". Errors: CodeValidationCursor.
func parsePosition(text string) (position, error) {
	if text == "" {
		return position{order: math.MinInt64 + 1}, nil
	}
	first, id, _ := strings.Cut(text, ":")
	order, err := strconv.ParseInt(first, 10, 64)
	p := position{order, id}
	if err != nil || id == "" || p.String() != text {
		return p, api.Errorf(api.CodeValidationCursor, "the cursor is not one that this list returned")
	}
	return p, nil
}
