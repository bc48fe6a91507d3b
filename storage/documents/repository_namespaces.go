package documents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Namespace is a namespace of documents with its counts.
type Namespace struct {
	Name   string
	Use    Count
	Schema string // the digest of its schema, "" for none
}

// feedRetention is how long the feed of a deleted namespace can be read.
const feedRetention = 24 * time.Hour

// Namespaces returns an install's namespaces by name, of which there are at most
// api.MaxDocumentNamespaces.
func (r *Repository) Namespaces(ctx context.Context, tenant, install string) ([]Namespace, error) {
	names, err := r.namespaces(ctx, tenant, install)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	pipe := r.s.Client().Pipeline()
	uses, schemas := make([]*redis.SliceCmd, len(names)), make([]*redis.StringCmd, len(names))
	for i, name := range names {
		uses[i] = pipe.HMGet(ctx, r.s.Keys().DocumentUsage(tenant, install), name+":r", name+":b")
		schemas[i] = pipe.GetRange(ctx, r.s.Keys().Documents(storage.DocumentPath{Tenant: tenant, Install: install, Namespace: name}).Schema(), 0, schemaDigest-1)
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return nil, storage.Failure(ctx, "list namespaces of documents", err)
	}
	out := make([]Namespace, len(names))
	for i, name := range names {
		out[i] = Namespace{Name: name, Use: countOf(uses[i].Val()), Schema: schemas[i].Val()}
	}
	return out, nil
}

func (r *Repository) namespaces(ctx context.Context, tenant, install string) ([]string, error) {
	names, err := r.s.Client().SMembers(ctx, r.s.Keys().DocumentNamespaces(tenant, install)).Result()
	slices.Sort(names)
	return names, storage.Failure(ctx, "list namespaces of documents", err)
}

// Clear deletes a namespace in steps: one call removes up to limit documents, each with
// its change in the feed, and with the last document the namespace, its schema and its
// count. more reports whether another call is needed, which remains so while other callers
// write. A higher limit reads less often over entries that were just deleted.
func (r *Repository) Clear(ctx context.Context, p storage.DocumentPath, limit int) (removed int, more bool, err error) {
	k := r.s.Keys().Documents(p)
	for after := ""; removed < max(limit, 1); {
		keys, err := r.s.LexRange(ctx, k.Index(), after, min(MaxSteps, max(limit, 1)-removed))
		if err != nil {
			return removed, true, storage.Failure(ctx, "clear documents", err)
		}
		if len(keys) == 0 {
			break
		}
		steps := make([]Step, len(keys))
		for i, key := range keys {
			steps[i] = Step{Op: api.DocumentStepDelete, Key: key}
		}
		if _, err := r.Write(ctx, p, steps, Quota{}, "", r.s.NowMS()); err != nil {
			return removed, true, err
		}
		removed, after = removed+len(keys), keys[len(keys)-1]
	}
	reply, err := r.s.Script(ctx, scriptDrop, []string{
		k.Records(), k.Index(), k.Expiry(), k.Changes(), k.Schema(), r.s.Keys().DocumentUsage(p.Tenant, p.Install),
		r.s.Keys().DocumentNamespaces(p.Tenant, p.Install), r.s.Keys().DocumentExpiring(p.Tenant),
		r.s.Keys().DocumentTenantUsage(p.Tenant),
	}, p.Namespace, p.Install, feedRetention.Milliseconds())
	return removed, err != nil || reply != int64(1), err
}

// schemaDigest is the length of a schema's digest, with which its record begins.
const schemaDigest = 2 * sha256.Size

// SetSchema stores the schema of a namespace, which it creates if necessary, and returns
// the digest of the schema. Digest and schema count as bytes of the namespace. From then on Write
// refuses callers that name another schema; stored documents are not checked. CodeQuotaExceeded
// with Quota; CodeDocumentInvalid where the install has api.MaxDocumentNamespaces namespaces;
// CodeTenantQuota as for Write.
func (r *Repository) SetSchema(ctx context.Context, p storage.DocumentPath, raw []byte, q Quota, nowMS int64) (digest string, err error) {
	sum := sha256.Sum256(raw)
	digest = hex.EncodeToString(sum[:])
	return digest, r.withRoom(ctx, p, nowMS, func() error {
		return r.registered(ctx, p, func() (bool, error) {
			_, registered, err := r.putSchema(ctx, p, digest+string(raw), q)
			return registered, err
		})
	})
}

// putSchema runs the script that sets a schema, or removes it with "". existed reports whether
// there was one, and registered whether the namespace is registered: nothing is set otherwise.
func (r *Repository) putSchema(ctx context.Context, p storage.DocumentPath, schema string, q Quota) (existed, registered bool, err error) {
	keys := []string{
		r.s.Keys().Documents(p).Schema(), r.s.Keys().DocumentNamespaces(p.Tenant, p.Install),
		r.s.Keys().DocumentUsage(p.Tenant, p.Install), r.s.Keys().DocumentTenantUsage(p.Tenant),
	}
	reply, err := r.s.Script(ctx, scriptSchema, keys, p.Namespace, p.Install, schema,
		q.NamespaceRecords, q.NamespaceBytes, q.TenantRecords, q.TenantBytes)
	if err != nil {
		return false, false, err
	}
	parts, _ := reply.([]any)
	switch texts := replyTexts(parts); {
	case len(texts) == 2 && texts[0] == "ok":
		return texts[1] == "1", true, nil
	case len(texts) == 1 && texts[0] == "register":
		return false, false, nil
	case len(texts) == 5 && texts[0] == "quota":
		return false, false, quotaExceeded(texts)
	}
	return false, false, api.Errorf(api.CodeInternal, "%s replied %v", scriptSchema, reply)
}

// Schema returns a namespace's schema and its digest, which is "" where it has no schema.
func (r *Repository) Schema(ctx context.Context, p storage.DocumentPath) (raw []byte, digest string, err error) {
	text, err := storage.Optional(r.s.Client().Get(ctx, r.s.Keys().Documents(p).Schema()))
	if err != nil {
		return nil, "", storage.Failure(ctx, "read schema", err)
	}
	if len(text) < schemaDigest {
		return nil, "", nil
	}
	return []byte(text[schemaDigest:]), text[:schemaDigest], nil
}

// DeleteSchema removes the schema of a namespace. existed reports whether it had one.
func (r *Repository) DeleteSchema(ctx context.Context, p storage.DocumentPath) (existed bool, err error) {
	existed, _, err = r.putSchema(ctx, p, "", Quota{})
	return existed, err
}
