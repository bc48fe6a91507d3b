package functions

import (
	"context"
	"encoding/json"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/storage"
)

// Compiler checks bundles before they are published.
type Compiler interface {
	// Check compiles a tenant's bundle in a sandbox of its own. Errors:
	// CodeValidationSource with file, line and column.
	Check(ctx context.Context, tenant, entry, handler string, bundle []byte) error
	// Verify evaluates the modules of a bundle that Check accepted. Errors:
	// CodeValidationSource where they fail.
	Verify(ctx context.Context, tenant, namespace, function string, config *api.VersionConfig, bundle []byte) (handlers []string, err error)
	// Authorize returns nil if inv would be admitted; nothing runs. Errors: Code…NotFound,
	// CodeAuthzDenied.
	Authorize(ctx context.Context, inv *api.Invocation) error
	// FunctionChanged drops what every replica has cached of a function: here immediately,
	// elsewhere by a notice. If the notice is lost, the cached resolution ends after a
	// second.
	FunctionChanged(ctx context.Context, tenant, namespace, function string)
	// Warm begins to prepare this replica for the first call of a version, where it has room.
	Warm(tenant, namespace, function string, version *api.Version)
}

// Publisher publishes drafts as versions. All fields are required.
type Publisher struct {
	Functions *storage.Functions
	Drafts    *storage.Drafts
	Versions  *storage.Versions
	Engine    Compiler
	Clock     func() time.Time
}

// PublishRequest describes a publication. Config is in the format of manifest.Config, nil or
// null for none, and overrides the manifest of the draft. Alias may be ""; else the step that
// writes the version also points it there, whatever it pointed at before.
type PublishRequest struct {
	Tenant, Namespace, Function string
	DraftID                     string
	Config                      json.RawMessage
	Alias                       string
	// By is who publishes, and Access what he may invoke: the destinations of the version must
	// accept him.
	By     api.Principal
	Access api.Access
	// Unverified publishes modules that may fail when they are loaded.
	Unverified bool
}

// Publish checks a draft and publishes it as the next version. created is false if the
// draft equals the latest version, which is then returned. Everything is checked before
// anything is written, and the write is one script: after a crash the version exists as a
// whole or not at all. A draft is published once; a later call with it gets
// CodeDraftConsumed. Errors: CodeInvalid… (name, config, manifest,
// bundle, source), CodeFunctionNotFound, CodeDraftNotFound, CodeDraftExpired,
// CodeDraftConsumed, CodeAuthzDenied for a destination that refuses the caller's roles.
//
// The caches are invalidated only for an alias, since a version itself never changes.
func (p *Publisher) Publish(ctx context.Context, r PublishRequest) (version api.Version, created bool, err error) {
	if _, err := api.DraftTimeMS(r.DraftID); err != nil {
		return api.Version{}, false, err
	}
	if r.Alias != "" {
		if err := api.ValidateAlias(r.Alias); err != nil {
			return api.Version{}, false, err
		}
	}
	fn, err := p.Functions.Get(ctx, r.Tenant, r.Namespace, r.Function)
	if err != nil {
		return api.Version{}, false, err
	}
	draft, err := p.Drafts.Get(ctx, r.Tenant, r.Namespace, r.Function, r.DraftID)
	if err != nil {
		return api.Version{}, false, err
	}
	config, err := manifest.Resolve(fn, draft.Files, r.Config)
	if err != nil {
		return api.Version{}, false, err
	}
	if err := p.mayReach(ctx, &r, &config); err != nil {
		return api.Version{}, false, err
	}
	packed, err := bundle.Pack(draft.Files)
	if err != nil {
		return api.Version{}, false, err
	}
	if bundle.Digest(packed) != draft.SHA256 {
		return api.Version{}, false, api.Errorf(api.CodeInternal, "draft %s does not match its digest", r.DraftID)
	}
	if err := p.Engine.Check(ctx, r.Tenant, config.Entry, config.Handler, packed); err != nil {
		return api.Version{}, false, err
	}
	var handlers []string
	if !r.Unverified {
		handlers, err = p.Engine.Verify(ctx, r.Tenant, r.Namespace, r.Function, &config, packed)
		if err != nil {
			return api.Version{}, false, err
		}
	}
	version, created, err = p.Versions.Publish(ctx, storage.Publish{
		Tenant: r.Tenant, Namespace: r.Namespace, Function: r.Function,
		DraftID: r.DraftID, SHA256: draft.SHA256, Bundle: packed,
		Config: config, Handlers: handlers, Alias: r.Alias, NowMS: p.Clock().UnixMilli(),
	})
	if err != nil {
		return api.Version{}, false, err
	}
	if r.Alias != "" {
		p.Engine.FunctionChanged(ctx, r.Tenant, r.Namespace, r.Function)
	}
	if created {
		p.Engine.Warm(r.Tenant, r.Namespace, r.Function, &version)
	}
	return version, created, nil
}

// mayReach refuses destinations that are functions whose list of roles excludes the caller:
// their jobs would run with whatever the published function returns. A destination that does
// not exist yet is accepted; its list is checked with each outcome, against the caller of the
// function. Errors: CodeAuthzDenied, CodeStoreUnavailable.
func (p *Publisher) mayReach(ctx context.Context, r *PublishRequest, config *api.VersionConfig) error {
	for _, d := range []struct {
		field string
		to    *api.Destination
	}{{"on_success", config.OnSuccess}, {"on_failure", config.OnFailure}} {
		if d.to == nil || d.to.Function == "" {
			continue
		}
		ref := api.Ref{Alias: d.to.Alias, Version: d.to.Version}
		if ref == (api.Ref{}) {
			ref.Alias = api.DefaultAlias
		}
		err := p.Engine.Authorize(ctx, &api.Invocation{
			Tenant: r.Tenant, Namespace: r.Namespace, Function: d.to.Function, Ref: ref,
			Trigger: api.Trigger{Type: api.TriggerQueue}, Principal: r.By, Access: r.Access,
		})
		switch api.ErrorCode(err) {
		case "", api.CodeFunctionNotFound, api.CodeVersionNotFound, api.CodeAliasNotFound:
		case api.CodeAuthzDenied:
			return api.Errorf(api.CodeAuthzDenied, "%s: function %s is for other roles than those of the API key", d.field, d.to.Function)
		default:
			return err
		}
	}
	return nil
}
