package storage

import (
	"context"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/quota"
)

// Publish is a request to make a version of a draft. Bundle is the canonical tar of the
// draft's files and SHA256 its digest; Alias, unless "", is pointed at the version.
type Publish struct {
	Tenant    string
	Namespace string
	Function  string
	DraftID   string
	SHA256    string
	Bundle    []byte
	Config    api.VersionConfig
	// Handlers are those that the verification found, nil without one.
	Handlers []string
	Alias    string
	NowMS    int64
}

// Publish makes the next version. Where the latest version has the same digest and
// configuration it returns that one, and created is false. In both cases it sets the alias
// and consumes the draft. Publishes of one function wait for each other in this process;
// conflicts with other processes are retried (see RetryConflicts). CodeFunctionNotFound,
// CodeDraftNotFound, CodeDraftExpired, CodeDraftConsumed, CodeTenantQuota.
func (r *Versions) Publish(ctx context.Context, p Publish) (version api.Version, created bool, err error) {
	k := r.s.keys.function(p.Tenant, p.Namespace, p.Function)
	unlock, err := r.s.publishing.Lock(ctx, string(k))
	if err != nil {
		return api.Version{}, false, err
	}
	defer unlock()
	tried := false
	err = RetryConflicts(ctx, func() error {
		before, err := r.beforePublish(ctx, k, p)
		if err != nil {
			return err
		}
		if n, consumed := headConsumed(before.head); consumed {
			version, created, err = r.ownPublish(ctx, p, n, tried)
			return err
		}
		tried = true
		version, created, err = r.publish(ctx, k, p, before)
		return err
	})
	if err == nil {
		NewDrafts(r.s).forget(ctx, p.Tenant, p.Namespace, p.Function, p.DraftID)
	}
	return version, created, err
}

// publishState is the state that a publish has read, and that its script compares again.
type publishState struct {
	seq    int64
	latest *api.Version // nil where there is none
	head   string       // the stored draft's first bytes
}

func (r *Versions) beforePublish(ctx context.Context, k functionKeys, p Publish) (publishState, error) {
	pipe := r.s.rdb.Pipeline()
	meta, seq := pipe.Get(ctx, k.meta()), pipe.Get(ctx, k.versionSeq())
	head := pipe.GetRange(ctx, k.draft(p.DraftID), 0, draftHead-1)
	if err := ExecOptional(ctx, pipe); err != nil {
		return publishState{}, Failure(ctx, "read draft", err)
	}
	if meta.Val() == "" {
		return publishState{}, functionNotFound(p.Function)
	}
	if _, err := liveFunction(meta.Val(), p.Function); err != nil {
		return publishState{}, err
	}
	if head.Val() == "" {
		return publishState{}, draftMissing(p.DraftID, p.NowMS)
	}
	state := publishState{head: head.Val()}
	var err error
	state.seq, err = parseSeq(seq.Val())
	if err != nil || state.seq == 0 {
		return state, err
	}
	latest, err := r.Get(ctx, p.Tenant, p.Namespace, p.Function, state.seq)
	state.latest = &latest
	return state, err
}

// ownPublish returns version n of a consumed draft, if an earlier try of this publish, whose
// answer was lost, made exactly the version that this one would make. tried reports that
// this call has run the script before; without it, another caller consumed the draft.
// CodeDraftConsumed.
func (r *Versions) ownPublish(ctx context.Context, p Publish, n int64, tried bool) (api.Version, bool, error) {
	if tried {
		v, err := r.Get(ctx, p.Tenant, p.Namespace, p.Function, n)
		if err != nil {
			return api.Version{}, false, err
		}
		same, err := p.equals(v)
		if same || err != nil {
			return v, v.PublishedAtMS == p.NowMS, err
		}
	}
	return api.Version{}, false, draftConsumed(p.DraftID, n)
}

func (r *Versions) publish(ctx context.Context, k functionKeys, p Publish, before publishState) (api.Version, bool, error) {
	madeMS, err := api.DraftTimeMS(p.DraftID)
	if err != nil {
		return api.Version{}, false, err
	}
	restMS := max(1, madeMS+api.DraftTTLMS-p.NowMS)
	if before.latest != nil {
		same, err := p.equals(*before.latest)
		if err != nil {
			return api.Version{}, false, err
		}
		if same {
			return *before.latest, false, r.publishAgain(ctx, k, p, before, restMS)
		}
	}
	v := api.Version{
		Version: before.seq + 1, SHA256: p.SHA256, SizeBytes: int64(len(p.Bundle)),
		Config: p.Config, Handlers: p.Handlers, PublishedAtMS: p.NowMS,
	}
	meta, err := Encode(v)
	if err != nil {
		return api.Version{}, false, err
	}
	grave, err := Encode(tombstone{p.DraftID, v.Version})
	if err != nil {
		return api.Version{}, false, err
	}
	keys := []string{
		k.meta(), k.versionSeq(), k.draft(p.DraftID), k.versions(),
		k.versionBundle(v.Version), k.versionMeta(v.Version), r.s.JobKeys(p.Tenant).Events(),
	}
	args := []any{
		strconv.FormatInt(before.seq, 10), strconv.FormatInt(v.Version, 10), before.head, p.Bundle, meta,
		grave, restMS, p.change(ctx, v.Version),
	}
	keys, args, err = withAlias(ctx, keys, args, k, p, v.Version)
	if err != nil {
		return api.Version{}, false, err
	}
	script := func() error {
		_, err := r.s.Script(ctx, scriptPublish, keys, args...)
		return err
	}
	size := quota.Amount{Quota: quota.BundleBytes, Amount: v.SizeBytes}
	if p.Alias == "" {
		return v, true, r.s.Taking(ctx, p.Tenant, script, One(quota.Versions), size)
	}
	return v, true, r.s.TakingNew(ctx, p.Tenant, k.aliases(), p.Alias, quota.Aliases, script, One(quota.Versions), size)
}

// equals reports whether v is the version that p would make. Configurations are compared
// in their stored form: there, an empty map and an absent one are the same.
func (p *Publish) equals(v api.Version) (bool, error) {
	if v.SHA256 != p.SHA256 {
		return false, nil
	}
	stored, err := Encode(v.Config)
	if err != nil {
		return false, err
	}
	asked, err := Encode(p.Config)
	return stored == asked, err
}

func (r *Versions) publishAgain(ctx context.Context, k functionKeys, p Publish, before publishState, restMS int64) error {
	grave, err := Encode(tombstone{p.DraftID, before.seq})
	if err != nil {
		return err
	}
	keys, args, err := withAlias(ctx,
		[]string{k.meta(), k.versionSeq(), k.draft(p.DraftID), r.s.JobKeys(p.Tenant).Events()},
		[]any{strconv.FormatInt(before.seq, 10), before.head, grave, restMS},
		k, p, before.seq)
	if err != nil {
		return err
	}
	_, err = r.s.Script(ctx, scriptPublishAgain, keys, args...)
	return err
}

// withAlias adds the keys and arguments with which a publish script sets the alias, if p
// has one.
func withAlias(ctx context.Context, keys []string, args []any, k functionKeys, p Publish, version int64) ([]string, []any, error) {
	if p.Alias == "" {
		return keys, args, nil
	}
	raw, err := Encode(api.Alias{Alias: p.Alias, Version: version, UpdatedAtMS: p.NowMS})
	change := aliasChange(ctx, event.AliasSet, p.NowMS, p.Namespace, p.Function, p.Alias, version)
	return append(keys, k.aliases(), k.alias(p.Alias)), append(args, p.Alias, raw, change), err
}
