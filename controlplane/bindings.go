package controlplane

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
)

const (
	pathBindings = pathNamespaces + "/{namespace}/cadence/workers"
	pathBinding  = pathBindings + "/{worker}"
)

// BindingPath is the path of a Cadence worker binding.
type BindingPath struct {
	NamespacePath
	Worker resourceName `path:"worker"`
}

// Resolve refuses a name out of its pattern.
func (p *BindingPath) Resolve(huma.Context) []error {
	return problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)), api.ValidateName("worker", string(p.Worker)))
}

// place is where the binding stands in the store.
func (p *BindingPath) place() storage.BindingPath {
	return storage.BindingPath{Tenant: string(p.Tenant), Namespace: string(p.Namespace), Name: string(p.Worker)}
}

type createBindingInput struct {
	NamespacePath
	IfNoneMatch string `header:"If-None-Match" doc:"* says what holds anyway: the binding must not exist"`
	Body        api.NewBinding
}

type listBindingsInput struct {
	NamespacePath
	PageQuery
}

type bindingInput struct{ BindingPath }

type changeBindingInput struct {
	BindingPath
	IfMatch string `header:"If-Match" doc:"the ETag that the binding must have now"`
	Body    changeBindingBody
}

type changeBindingBody struct {
	Domain      nullable[string]                   `json:"domain,omitzero"`
	Tasklist    nullable[string]                   `json:"tasklist,omitzero"`
	WorkerID    nullable[string]                   `json:"worker_id,omitzero" doc:"the identity that Cadence shows"`
	ActivityMap nullable[map[string]api.JobTarget] `json:"activity_map,omitzero" doc:"the whole of it: types that it leaves out go"`
	Pollers     nullable[api.BindingPollers]       `json:"pollers,omitzero"`
	Limits      nullable[api.BindingLimits]        `json:"limits,omitzero"`
	Enabled     *bool                              `json:"enabled,omitempty"`
}

func (b *changeBindingBody) change() *api.BindingChange {
	return &api.BindingChange{
		Domain: b.Domain.given, Tasklist: b.Tasklist.given, WorkerID: b.WorkerID.given, ActivityMap: b.ActivityMap.given,
		Pollers: b.Pollers.given, Limits: b.Limits.given, Enabled: b.Enabled,
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

type bindingPageOutput struct{ Body api.Page[api.BindingStatus] }

func (s *Server) routeBindings(t typedAPI) {
	tags := []string{"cadence"}
	register(t, huma.Operation{
		OperationID: "create-worker-binding", Method: http.MethodPost, Path: pathBindings, Tags: tags,
		Summary: "Create a Cadence worker binding", DefaultStatus: http.StatusCreated,
		Description: "Functions of the namespace run the activities of activity_map, by activity type, that Cadence hands out on the domain's tasklist. " +
			"They are invoked on behalf of the caller, who must be allowed to. 409 if the binding exists.",
	}, s.createBinding)
	register(t, huma.Operation{
		OperationID: "list-worker-bindings", Method: http.MethodGet, Path: pathBindings, Tags: tags,
		Summary: "List a namespace's Cadence worker bindings by name, with how they get on",
	}, s.listBindings)
	register(t, huma.Operation{
		OperationID: "get-worker-binding", Method: http.MethodGet, Path: pathBinding, Tags: tags,
		Summary: "Read a Cadence worker binding and how its workers get on", Description: "The ETag is its revision. Counts are seconds old.",
	}, s.getBinding)
	register(t, huma.Operation{
		OperationID: "change-worker-binding", Method: http.MethodPatch, Path: pathBinding, Tags: tags,
		Summary: "Change a Cadence worker binding, or enable or disable it",
		Description: "What is left out stays; null gives the default. New workers take the next tasks, those before them finish what they have. " +
			"If-Match guards the change.",
	}, s.changeBinding)
	register(t, huma.Operation{
		OperationID: "delete-worker-binding", Method: http.MethodDelete, Path: pathBinding, Tags: tags,
		Summary: "Delete a Cadence worker binding", Description: "Activities that run go on to their end. If-Match guards it.",
	}, s.deleteBinding)
}

// answerBinding gives the binding as it is now, with its status.
func (s *Server) answerBinding(ctx context.Context, path storage.BindingPath) (*bindingOutput, error) {
	status, err := s.bindings.Status(ctx, path)
	if err != nil {
		return nil, err
	}
	return &bindingOutput{ETag: revisionTag(status.Revision), Body: status}, nil
}

func (s *Server) createBinding(ctx context.Context, in *createBindingInput) (*bindingOutput, error) {
	if err := createOnly(in.IfNoneMatch); err != nil {
		return nil, err
	}
	path := storage.BindingPath{Tenant: string(in.Tenant), Namespace: string(in.Namespace), Name: in.Body.Name}
	stored := bindings.Record{WorkerBinding: in.Body.Binding()}
	if err := s.takeBinding(ctx, path, &stored); err != nil {
		return nil, err
	}
	if _, err := s.bindings.Create(ctx, path.Tenant, path.Namespace, stored, s.now()); err != nil {
		return nil, err
	}
	noteMade(ctx, path.Name)
	return s.answerBinding(ctx, path)
}

func (s *Server) listBindings(ctx context.Context, in *listBindingsInput) (*bindingPageOutput, error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	list := listScope("bindings", tenant, namespace)
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.bindings.ListStatus(ctx, tenant, namespace, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return &bindingPageOutput{Body: page(items, list.seal(next))}, nil
}

func (s *Server) getBinding(ctx context.Context, in *bindingInput) (*bindingOutput, error) {
	return s.answerBinding(ctx, in.place())
}

func (s *Server) changeBinding(ctx context.Context, in *changeBindingInput) (*bindingOutput, error) {
	path, change := in.place(), in.Body.change()
	revision, err := s.matchBinding(ctx, path, in.IfMatch)
	if err != nil {
		return nil, err
	}
	_, err = s.bindings.Update(ctx, path, revision, s.now(), func(b *bindings.Record) error {
		if *change == (api.BindingChange{}) {
			return nil
		}
		change.Apply(&b.WorkerBinding)
		if change.Disables() { // who may not run it may still stop it
			return nil
		}
		return s.takeBinding(ctx, path, b)
	})
	if err != nil {
		return nil, err
	}
	return s.answerBinding(ctx, path)
}

func (s *Server) deleteBinding(ctx context.Context, in *deleteBindingInput) (*struct{}, error) {
	revision, err := s.matchBinding(ctx, in.place(), in.IfMatch)
	if err != nil {
		return nil, err
	}
	return nil, s.bindings.Delete(ctx, in.place(), revision)
}

// matchBinding turns an If-Match into the revision that the binding must have, nil
// for any. CodePreconditionFailed, CodeBindingNotFound.
func (s *Server) matchBinding(ctx context.Context, path storage.BindingPath, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil
	}
	found, err := s.bindings.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	if !namesTag(ifMatch, revisionTag(found.Revision)) {
		return nil, api.Errorf(api.CodePreconditionFailed, "the worker binding does not have the ETag that If-Match names")
	}
	return &found.Revision, nil
}

// takeBinding checks a binding and makes it the caller's.
func (s *Server) takeBinding(ctx context.Context, path storage.BindingPath, b *bindings.Record) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if err := s.mayBind(ctx, path, &b.WorkerBinding); err != nil {
		return err
	}
	c := callerOf(ctx)
	b.Principal, b.Access = c.principal(), c.access()
	return nil
}

// mayBind refuses a binding whose functions are not there, or are not the caller's to
// invoke: nobody asks them again when a task comes. Errors: those of Engine.Authorize,
// CodeAuthzDenied.
func (s *Server) mayBind(ctx context.Context, path storage.BindingPath, b *api.WorkerBinding) error {
	c := callerOf(ctx)
	if err := c.need(actionFunctionInvoke); err != nil {
		return err
	}
	judged := map[api.JobTarget]bool{}
	for _, kind := range b.ActivityTypes() {
		target := b.ActivityMap[kind]
		if judged[target] {
			continue
		}
		judged[target] = true
		err := s.engine.Authorize(ctx, &api.Invocation{
			Tenant: path.Tenant, Namespace: path.Namespace, Function: target.Function, Ref: target.Ref(),
			Trigger: api.Trigger{Type: api.TriggerCadence}, Principal: c.principal(), Access: c.access(),
		})
		var refused *api.Error
		if errors.As(err, &refused) && statusOf(refused.Code) == http.StatusNotFound {
			return api.Wrap(refused.Code, err, refused.Message).
				WithFields(api.FieldError{Path: "activity_map." + kind, Message: "must be a function that exists, with the alias or version"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
