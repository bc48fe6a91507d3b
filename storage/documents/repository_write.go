package documents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// MaxSteps is the largest number of steps in one write.
const MaxSteps = 100

// Step is a check, a put or a delete in a write. A check changes nothing: it only makes the
// write depend on a revision. A delete of a missing document succeeds, unless If is set.
type Step struct {
	Op  string // api.DocumentStepCheck, DocumentStepPut or DocumentStepDelete
	Key string
	// Value and Metadata are compact JSON; empty metadata is {}.
	Value, Metadata json.RawMessage
	ExpiresAtMS     int64 // milliseconds since 1970; 0: never
	// If is the revision that the document must have, 0 if it must not exist; nil accepts
	// any.
	If *int64
}

// stepExpire is a step of the repository's own: it removes a document if it has expired when
// the script runs. A document that was written again meanwhile stays, and its entry among the
// expiring ones is corrected.
const stepExpire = "expire"

func expirySteps(keys []string) []Step {
	steps := make([]Step, len(keys))
	for i, key := range keys {
		steps[i] = Step{Op: stepExpire, Key: key}
	}
	return steps
}

// Write makes up to MaxSteps steps on documents of one namespace, all or none. schema is
// the digest of the namespace's schema that the values satisfy, "" for none. The result is
// each step's document after the write, without Value and Metadata; Revision 0 means that
// it does not exist. nowMS is the time of the write, by which documents expire. The first
// write of a namespace registers it.
//
// The script is sent a second time where its answer was lost, unless a step has an If: a put
// without If then writes the document twice, and its revision grows by two.
//
// Where steps fail, the error has the code of the first one and an item for each:
// CodeRevisionMismatch; CodeDocumentNotFound for a conditional delete of a missing
// document; CodeDocumentInvalid for a key that an earlier step has. Other failures:
// CodeQuotaExceeded with Quota; CodeDocumentInvalid where the install has
// api.MaxDocumentNamespaces namespaces; CodeTenantQuota where the tenant has had as many
// namespaces as its limit; CodeStoreConflict where the namespace has another schema.
func (r *Repository) Write(ctx context.Context, p storage.DocumentPath, steps []Step, q Quota, schema string, nowMS int64) ([]Record, error) {
	if err := checkSteps(steps); err != nil || len(steps) == 0 {
		return nil, err
	}
	var out []Record
	err := r.withRoom(ctx, p, nowMS, func() (err error) {
		out, err = r.write(ctx, p, steps, q, schema, nowMS)
		return err
	})
	if err == nil {
		r.feeds.wrote(p)
	}
	return out, err
}

// withRoom calls write again while it fails with CodeQuotaExceeded and expired documents can be
// removed: they must not refuse a write.
func (r *Repository) withRoom(ctx context.Context, p storage.DocumentPath, nowMS int64, write func() error) error {
	err := write()
	for tries := 0; api.ErrorCode(err) == api.CodeQuotaExceeded && tries < makeRoomTries; tries++ {
		freed, failed := r.makeRoom(ctx, p, nowMS)
		if failed != nil {
			return failed
		}
		if freed == 0 {
			break
		}
		err = write()
	}
	return err
}

// makeRoomTries is how often a write that lacks room removes expired documents, up to
// MaxSteps of each namespace at a time.
const makeRoomTries = 8

// checkSteps refuses steps that fail in every state of the store.
func checkSteps(steps []Step) error {
	if len(steps) > MaxSteps {
		return api.Errorf(api.CodeDocumentInvalid, "a write has at most %d steps", MaxSteps)
	}
	var failed []api.ItemError
	seen := make(map[string]struct{}, len(steps))
	for i := range steps {
		if _, twice := seen[steps[i].Key]; twice {
			failed = append(failed, api.ItemError{Index: i, Code: api.CodeDocumentInvalid, Message: "an earlier item has the same key"})
		}
		seen[steps[i].Key] = struct{}{}
	}
	return stepsFailed(failed)
}

func stepsFailed(items []api.ItemError) error {
	if len(items) == 0 {
		return nil
	}
	e := api.Errorf(items[0].Code, "item %d: %s", items[0].Index, items[0].Message)
	e.Items = items
	return e
}

// write runs the script of a write, and registers the namespace if it is new. Its arguments
// for a put of "invoice" with the value {"n":1} that must be at revision 1:
//
//	settings crm 1767225660000 "" 10000 1000 10  10000 67108864 100000 671088640
//	put invoice 1 0 16 "expires_at_ms":0,"bytes":16,…,"metadata":{},"value":{"n":1}}
//
// The record's text begins with expires_at_ms, because the script adds revision and
// created_at_ms, which only it knows.
func (r *Repository) write(ctx context.Context, p storage.DocumentPath, steps []Step, q Quota, schema string, nowMS int64) ([]Record, error) {
	k := r.s.Keys().Documents(p)
	keys := []string{
		k.Records(), k.Index(), k.Expiry(), k.Changes(), k.Schema(),
		r.s.Keys().DocumentUsage(p.Tenant, p.Install), r.s.Keys().DocumentTenantUsage(p.Tenant),
		r.s.Keys().DocumentNamespaces(p.Tenant, p.Install), r.s.Keys().DocumentExpiring(p.Tenant),
	}
	args := []any{
		p.Namespace, p.Install, nowMS, schema, api.MaxDocumentChanges, api.MinDocumentChanges, api.DocumentChangesEach,
		q.NamespaceRecords, q.NamespaceBytes, q.TenantRecords, q.TenantBytes,
	}
	for i := range steps {
		args = append(args, steps[i].args(nowMS)...)
	}
	eval := r.s.Script
	if slices.ContainsFunc(steps, func(step Step) bool { return step.If != nil }) {
		eval = r.s.ScriptOnce // a repeated try would meet the revision that its first try wrote
	}
	var out []Record
	err := r.registered(ctx, p, func() (bool, error) {
		reply, err := eval(ctx, scriptWrite, keys, args...)
		if err != nil {
			return false, err
		}
		parts, _ := reply.([]any)
		if len(parts) == 1 && parts[0] == "register" {
			return false, nil
		}
		out, err = writeReply(steps, parts)
		return true, err
	})
	return out, err
}

// registerTries is how often a write registers its namespace, which another caller may be
// deleting.
const registerTries = 5

// registered calls do until it reports true, and registers the namespace before each
// further call.
func (r *Repository) registered(ctx context.Context, p storage.DocumentPath, do func() (bool, error)) error {
	for range registerTries {
		if done, err := do(); done || err != nil {
			return err
		}
		if err := r.register(ctx, p); err != nil {
			return err
		}
	}
	return api.Errorf(api.CodeStoreConflict, "the namespace %q is being deleted", p.Namespace)
}

// register adds a namespace to the registry, after its tenant and install, before its
// first document is written. CodeDocumentInvalid where the install or the tenant has
// reached its limit; CodeTenantQuota for a namespace that the tenant has never had.
func (r *Repository) register(ctx context.Context, p storage.DocumentPath) error {
	if err := storage.NewTenants(r.s).RegisterDocuments(ctx, p.Tenant); err != nil {
		return err
	}
	names := r.s.Keys().DocumentNames(p.Tenant)
	return r.s.TakingNew(ctx, p.Tenant, names, p.Install+"/"+p.Namespace, quota.DocNamespaces, func() error { return r.list(ctx, p) })
}

// list runs the script of register.
func (r *Repository) list(ctx context.Context, p storage.DocumentPath) error {
	k := r.s.Keys()
	reply, err := r.s.Script(ctx, scriptRegister,
		[]string{k.DocumentNamespaces(p.Tenant, p.Install), k.DocumentInstalls(p.Tenant), k.Documents(p).Changes(), k.DocumentNames(p.Tenant)},
		p.Namespace, p.Install, api.MaxDocumentNamespaces, api.MaxDocumentInstalls)
	switch {
	case err != nil || reply == int64(1):
	case reply == int64(-1):
		err = tooManyInstalls()
	default:
		err = api.Errorf(api.CodeDocumentInvalid, "limit of %d namespaces reached by install %q", api.MaxDocumentNamespaces, p.Install).
			WithFields(api.FieldError{Path: "namespace", Message: fmt.Sprintf("an install has at most %d", api.MaxDocumentNamespaces)})
	}
	return err
}

func tooManyInstalls() error {
	return api.DocumentFieldError("install", fmt.Sprintf("limit of %d installs reached", api.MaxDocumentInstalls))
}

// writeReply parses the reply of the script of a write; lua/document_write.lua lists its forms.
// The head of a record, which ends with a comma, becomes a Record without metadata and value.
func writeReply(steps []Step, parts []any) ([]Record, error) {
	texts := replyTexts(parts)
	switch {
	case len(texts) == 1+len(steps) && texts[0] == "ok":
		return writtenRecords(steps, texts[1:])
	case len(texts) > 2 && texts[0] == "items":
		return nil, stepsFailed(failedItems(texts[1:]))
	case len(texts) == 5 && texts[0] == "quota":
		return nil, quotaExceeded(texts)
	}
	return nil, api.Errorf(api.CodeInternal, "%s replied %q", scriptWrite, texts)
}

// replyTexts returns the parts of a reply, which are strings and numbers, as strings.
func replyTexts(parts []any) []string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		switch part := part.(type) {
		case string:
			texts[i] = part
		case int64:
			texts[i] = strconv.FormatInt(part, 10)
		}
	}
	return texts
}

// quotaExceeded returns the error for the reply "quota", scope, unit, limit, used.
func quotaExceeded(texts []string) error {
	use := &api.QuotaUse{Scope: texts[1], Unit: texts[2], Limit: replyInt(texts[3]), Used: replyInt(texts[4])}
	e := api.Errorf(api.CodeQuotaExceeded, "the quota of the %s is exceeded: %d of %d %s in use", use.Scope, use.Used, use.Limit, use.Unit)
	e.Quota = use
	return e
}

func writtenRecords(steps []Step, heads []string) ([]Record, error) {
	out := make([]Record, len(steps))
	for i, head := range heads {
		out[i].Key = steps[i].Key
		if head == "" {
			continue
		}
		d, err := parseRecord(steps[i].Key, strings.TrimSuffix(head, ",")+"}")
		if err != nil {
			return nil, err
		}
		out[i] = *d
	}
	return out, nil
}

// failedItems parses pairs of an index and a code.
func failedItems(pairs []string) []api.ItemError {
	var items []api.ItemError
	for i := 0; i+1 < len(pairs); i += 2 {
		item := api.ItemError{Index: int(replyInt(pairs[i])), Code: api.Code(pairs[i+1])}
		item.Message = "the document has another revision than it must have"
		if item.Code == api.CodeDocumentNotFound {
			item.Message = "there is no such document"
		}
		items = append(items, item)
	}
	return items
}

// args returns the script's arguments for one step.
func (s *Step) args(nowMS int64) []any {
	must := ""
	if s.If != nil {
		must = strconv.FormatInt(*s.If, 10)
	}
	if s.Op != api.DocumentStepPut {
		return []any{s.Op, s.Key, must, 0, 0, ""}
	}
	metadata, value := s.Metadata, s.Value
	if len(metadata) == 0 {
		metadata = json.RawMessage(`{}`)
	}
	bytes := len(s.Key) + len(metadata) + len(value)
	var record strings.Builder
	fmt.Fprintf(&record, `"expires_at_ms":%d,"bytes":%d,"updated_at_ms":%d,"metadata_bytes":%d,"metadata":%s,"value":%s}`,
		s.ExpiresAtMS, bytes, nowMS, len(metadata), metadata, value)
	return []any{s.Op, s.Key, must, s.ExpiresAtMS, bytes, record.String()}
}
