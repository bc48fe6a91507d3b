package triggers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
)

const (
	pathBindings = rest.PathNamespace + "/cadence/workers"
	pathBinding  = pathBindings + "/{worker}"
)

// BindingPath holds the parameters of the path of a Cadence worker binding.
type BindingPath struct {
	rest.NamespacePath
	Worker rest.ResourceName `path:"worker"`
}

// Resolve refuses a name that does not match its pattern.
func (p *BindingPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)), api.ValidateName("worker", string(p.Worker)))
}

// path returns the binding's path in the store.
func (p *BindingPath) path() storage.BindingPath {
	return storage.BindingPath{Tenant: string(p.Tenant), Namespace: string(p.Namespace), Name: string(p.Worker)}
}

type createBindingInput struct {
	rest.NamespacePath
	IfNoneMatch string `header:"If-None-Match" doc:"* says what holds anyway: the binding must not exist"`
	Body        api.NewBinding
}

type listBindingsInput struct {
	rest.NamespacePath
	rest.PageQuery
}

type bindingInput struct{ BindingPath }

type changeBindingInput struct {
	BindingPath
	IfMatch string `header:"If-Match" doc:"the ETag that the binding must have now"`
	Body    changeBindingBody
}

// changeBindingBody is a partial update: a field that is left out keeps its value, null
// restores its default. A map or an object replaces the stored one as a whole.
type changeBindingBody struct {
	Domain      rest.Nullable[string]                   `json:"domain,omitzero"`
	Tasklist    rest.Nullable[string]                   `json:"tasklist,omitzero"`
	WorkerID    rest.Nullable[string]                   `json:"worker_id,omitzero" doc:"the identity that Cadence shows"`
	ActivityMap rest.Nullable[map[string]api.JobTarget] `json:"activity_map,omitzero" doc:"the complete map: types that are left out are removed"`
	Pollers     rest.Nullable[api.BindingPollers]       `json:"pollers,omitzero"`
	Limits      rest.Nullable[api.BindingLimits]        `json:"limits,omitzero"`
	Enabled     *bool                                   `json:"enabled,omitempty"`
}

// change returns the body as the domain knows it.
func (b *changeBindingBody) change() *api.BindingChange {
	return &api.BindingChange{
		Domain: b.Domain.Value, Tasklist: b.Tasklist.Value, WorkerID: b.WorkerID.Value, ActivityMap: b.ActivityMap.Value,
		Pollers: b.Pollers.Value, Limits: b.Limits.Value, Enabled: b.Enabled,
	}
}

type deleteBindingInput struct {
	BindingPath
	IfMatch string `header:"If-Match" doc:"the ETag that the binding must have now"`
}

type bindingOutput struct {
	ETag string `header:"ETag"`
	Body api.BindingStatus
}

// bindingEndpoints declares the routes of bindings. The replicas follow the records
// (cadenceworker); a change reaches them by a notice, or within ten seconds.
func (a *API) bindingEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathBindings, Action: access.BindingCreate, Extent: rest.PathNamespaceOnly,
			ID: "create-worker-binding", Tag: "cadence", Summary: "Create a Cadence worker binding", Status: http.StatusCreated,
			Description: "Functions of the namespace run the activities of activity_map, by activity type, that Cadence hands out on the domain's tasklist. " +
				"They are invoked on behalf of the caller, who must be allowed to. 409 if the binding exists.",
		}, a.createBinding),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathBindings, Action: access.BindingRead, Extent: rest.PathNamespaceOnly,
			ID: "list-worker-bindings", Tag: "cadence", Summary: "List a namespace's Cadence worker bindings by name, with their state",
		}, a.listBindings),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathBinding, Action: access.BindingRead, Extent: rest.PathNamespaceOnly,
			ID: "get-worker-binding", Tag: "cadence", Summary: "Read a Cadence worker binding and the state of its workers", Description: "The ETag is its revision. Counts are seconds old.",
		}, a.getBinding),
		rest.Operation(rest.Route{
			Method: http.MethodPatch, Path: pathBinding, Action: access.BindingUpdate, Extent: rest.PathNamespaceOnly,
			ID: "change-worker-binding", Tag: "cadence", Summary: "Change a Cadence worker binding, or enable or disable it",
			Description: "Fields that are left out keep their values; null restores the default. New workers take the next tasks; the previous ones finish theirs. " +
				"If-Match guards the change.",
		}, a.changeBinding),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathBinding, Action: access.BindingDelete, Extent: rest.PathNamespaceOnly,
			ID: "delete-worker-binding", Tag: "cadence", Summary: "Delete a Cadence worker binding", Description: "Running activities run to their end. If-Match guards the deletion.",
		}, a.deleteBinding),
	}
}

// answerBinding answers with the binding as it is now, and its status. It reads both again
// after a change, so a later change by another caller may show.
func (a *API) answerBinding(ctx context.Context, path storage.BindingPath) (*bindingOutput, error) {
	status, err := a.bindings.Status(ctx, path)
	if err != nil {
		return nil, err
	}
	return &bindingOutput{ETag: rest.RevisionTag(status.Revision), Body: status}, nil
}

// createBinding creates a binding that the caller owns. Errors: CodeBindingExists,
// CodeBindingLimit, CodeInvalid, those of mayBind.
func (a *API) createBinding(ctx context.Context, in *createBindingInput) (*bindingOutput, error) {
	if err := rest.CreateOnly(in.IfNoneMatch); err != nil {
		return nil, err
	}
	path := storage.BindingPath{Tenant: string(in.Tenant), Namespace: string(in.Namespace), Name: in.Body.Name}
	stored := bindings.Record{WorkerBinding: in.Body.Binding()}
	if err := a.ownBinding(ctx, path, &stored); err != nil {
		return nil, err
	}
	if _, err := a.bindings.Create(ctx, path.Tenant, path.Namespace, stored, a.clock().UnixMilli()); err != nil {
		return nil, err
	}
	rest.NoteMade(ctx, path.Name)
	return a.answerBinding(ctx, path)
}

// listBindings answers with a page of a namespace's bindings by name. The counts of their
// workers are reports of the replicas and seconds old.
func (a *API) listBindings(ctx context.Context, in *listBindingsInput) (*rest.PageOutput[api.BindingStatus], error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	return rest.ReadPage(rest.ListScope("bindings", tenant, namespace), in.Cursor, func(after string) ([]api.BindingStatus, string, error) {
		return a.bindings.ListStatus(ctx, tenant, namespace, after, in.Limit)
	})
}

func (a *API) getBinding(ctx context.Context, in *bindingInput) (*bindingOutput, error) {
	return a.answerBinding(ctx, in.path())
}

// changeBinding changes a binding and makes the caller its owner. A change that only
// disables it keeps the owner, and needs no permission to invoke its functions. An empty
// body changes nothing. The function that it passes to Update is called again if another
// change comes between, each time with the binding as it is then. Errors:
// CodeBindingNotFound, CodePreconditionFailed, those of createBinding.
func (a *API) changeBinding(ctx context.Context, in *changeBindingInput) (*bindingOutput, error) {
	path, change := in.path(), in.Body.change()
	revision, err := a.matchBinding(ctx, path, in.IfMatch)
	if err != nil {
		return nil, err
	}
	_, err = a.bindings.Update(ctx, path, revision, a.clock().UnixMilli(), func(b *bindings.Record) error {
		if *change == (api.BindingChange{}) {
			return nil
		}
		change.Apply(&b.WorkerBinding)
		if change.Disables() { // a caller that may not run the functions may still stop them
			return nil
		}
		return a.ownBinding(ctx, path, b)
	})
	if err != nil {
		return nil, err
	}
	return a.answerBinding(ctx, path)
}

// deleteBinding deletes a binding. Running activities run to their end. Errors:
// CodeBindingNotFound, CodePreconditionFailed.
func (a *API) deleteBinding(ctx context.Context, in *deleteBindingInput) (*struct{}, error) {
	revision, err := a.matchBinding(ctx, in.path(), in.IfMatch)
	if err != nil {
		return nil, err
	}
	return nil, a.bindings.Delete(ctx, in.path(), revision)
}

// matchBinding returns the revision that the binding must have by an If-Match, nil for
// any. Errors: CodePreconditionFailed, CodeBindingNotFound.
func (a *API) matchBinding(ctx context.Context, path storage.BindingPath, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil
	}
	found, err := a.bindings.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	if !rest.NamesTag(ifMatch, rest.RevisionTag(found.Revision)) {
		return nil, api.Errorf(api.CodePreconditionFailed, "the worker binding does not have the ETag that If-Match names")
	}
	return &found.Revision, nil
}

// ownBinding validates a binding and makes the caller its owner, on whose behalf its
// functions are invoked. Errors: CodeInvalid, those of mayBind.
func (a *API) ownBinding(ctx context.Context, path storage.BindingPath, b *bindings.Record) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if err := a.mayBind(ctx, path, &b.WorkerBinding); err != nil {
		return err
	}
	c := rest.CallerOf(ctx)
	b.Principal, b.Access = c.Principal(), c.Access()
	return nil
}

// mayBind refuses a binding whose functions do not exist, or that the caller may not
// invoke: activities are not authorized again when they run. A function that several
// activity types name is checked once. Errors: those of mayRun.
func (a *API) mayBind(ctx context.Context, path storage.BindingPath, b *api.WorkerBinding) error {
	checked := map[api.JobTarget]bool{}
	for _, kind := range b.ActivityTypes() {
		target := b.ActivityMap[kind]
		if checked[target] {
			continue
		}
		checked[target] = true
		if err := a.mayRun(ctx, path.Tenant, path.Namespace, api.TriggerCadence, target, "activity_map."+kind); err != nil {
			return err
		}
	}
	return nil
}
