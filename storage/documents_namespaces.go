package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// DocumentNamespace is a namespace of documents.
type DocumentNamespace struct {
	Name   string
	Use    DocumentCount
	Schema string // the digest of its schema, "" for none
}

// documentFeedRest is for how long the feed of a namespace that was deleted can be read.
const documentFeedRest = 24 * time.Hour

// Namespaces gives an install's namespaces, of which there are at most
// api.MaxDocumentNamespaces, by name.
func (r *Documents) Namespaces(ctx context.Context, tenant, install string) ([]DocumentNamespace, error) {
	names, err := r.namespaces(ctx, tenant, install)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	pipe := r.s.rdb.Pipeline()
	uses, schemas := make([]*redis.SliceCmd, len(names)), make([]*redis.StringCmd, len(names))
	for i, name := range names {
		uses[i] = pipe.HMGet(ctx, r.s.keys.documentUsage(tenant, install), name+":r", name+":b")
		schemas[i] = pipe.GetRange(ctx, r.s.keys.documents(DocumentPath{tenant, install, name}).schema(), 0, schemaDigest-1)
	}
	if err := ExecOptional(ctx, pipe); err != nil {
		return nil, failure(ctx, "list namespaces of documents", err)
	}
	out := make([]DocumentNamespace, len(names))
	for i, name := range names {
		out[i] = DocumentNamespace{Name: name, Use: documentCount(uses[i].Val()), Schema: schemas[i].Val()}
	}
	return out, nil
}

func (r *Documents) namespaces(ctx context.Context, tenant, install string) ([]string, error) {
	names, err := r.s.rdb.SMembers(ctx, r.s.keys.documentNamespaces(tenant, install)).Result()
	slices.Sort(names)
	return names, failure(ctx, "list namespaces of documents", err)
}

// Clear deletes a namespace step by step: up to limit documents, each with its change in
// the feed, and with the last of them the namespace, its schema and its count. more says
// that it is not done; it may never be while others write. A higher limit reads less often
// over what was deleted just now.
func (r *Documents) Clear(ctx context.Context, p DocumentPath, limit int) (removed int, more bool, err error) {
	k := r.s.keys.documents(p)
	for after := ""; removed < max(limit, 1); {
		keys, err := r.s.lexRange(ctx, k.index(), after, min(MaxDocumentSteps, max(limit, 1)-removed))
		if err != nil {
			return removed, true, failure(ctx, "clear documents", err)
		}
		if len(keys) == 0 {
			break
		}
		steps := make([]DocumentStep, len(keys))
		for i, key := range keys {
			steps[i] = DocumentStep{Op: api.DocumentStepDelete, Key: key}
		}
		if _, err := r.Write(ctx, p, steps, DocumentQuota{}, "", r.s.NowMS()); err != nil {
			return removed, true, err
		}
		removed, after = removed+len(keys), keys[len(keys)-1]
	}
	reply, err := r.s.eval(ctx, scriptDocumentDrop, []string{
		k.records(), k.index(), k.expiry(), k.changes(), k.schema(), r.s.keys.documentUsage(p.Tenant, p.Install),
		r.s.keys.documentNamespaces(p.Tenant, p.Install), r.s.keys.documentExpiring(p.Tenant),
	}, p.Namespace, p.Install, documentFeedRest.Milliseconds())
	return removed, err != nil || reply != int64(1), err
}

// schemaDigest is the length of a schema's digest, which its record begins with.
const schemaDigest = 2 * sha256.Size

// SetSchema gives a namespace, which comes into being if need be, its schema, and gives its
// digest. Writes that keep to another are refused from then on; what is stored stays.
// CodeValidationFailed where the install would have too many namespaces.
func (r *Documents) SetSchema(ctx context.Context, p DocumentPath, raw []byte) (digest string, err error) {
	sum := sha256.Sum256(raw)
	digest = hex.EncodeToString(sum[:])
	keys := []string{r.s.keys.documents(p).schema(), r.s.keys.documentNamespaces(p.Tenant, p.Install)}
	return digest, r.registered(ctx, p, func() (bool, error) {
		reply, err := r.s.eval(ctx, scriptDocumentSchema, keys, p.Namespace, digest+string(raw))
		return reply == int64(1), err
	})
}

// Schema gives a namespace's schema and its digest, "" for none.
func (r *Documents) Schema(ctx context.Context, p DocumentPath) (raw []byte, digest string, err error) {
	text, err := Optional(r.s.rdb.Get(ctx, r.s.keys.documents(p).schema()))
	if err != nil {
		return nil, "", failure(ctx, "read schema", err)
	}
	if len(text) < schemaDigest {
		return nil, "", nil
	}
	return []byte(text[schemaDigest:]), text[:schemaDigest], nil
}

// DeleteSchema lets a namespace's values be what they like. existed is false where it had
// no schema.
func (r *Documents) DeleteSchema(ctx context.Context, p DocumentPath) (existed bool, err error) {
	n, err := r.s.rdb.Del(ctx, r.s.keys.documents(p).schema()).Result()
	return n > 0, failure(ctx, "delete schema", err)
}
