package bindings

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// The scripts of worker bindings, by the names of their files in package lua.
const (
	scriptPut    = "binding_put.lua"
	scriptDelete = "binding_delete.lua"
)

// Record is a worker binding's record. Its activities run on behalf of the principal that
// created or last changed it.
type Record struct {
	api.WorkerBinding
	Principal api.Principal `json:"principal"`
	Access    api.Access    `json:"access"`
	// Write is the random name of the write that made the record, "" in records of earlier
	// releases. The script that writes takes a record that equals the stored one for a repeat
	// of the same write; of two callers that create equal bindings within a millisecond, one
	// must be refused.
	Write string `json:"write,omitempty"`
}

// Found is a binding with the names that locate it.
type Found struct {
	Path storage.BindingPath
	Record
}

// Repository keeps the Cadence worker bindings and each namespace's index of them. The
// index is a set: lists read it whole, which api.MaxBindings limits. It is safe for concurrent
// use, by any number of processes.
type Repository struct{ s *storage.Store }

// New returns the bindings in s.
func New(s *storage.Store) *Repository { return &Repository{s} }

// Create stores a new binding and sets its revision and times; nowMS is milliseconds since
// 1970. The namespace is registered before, so that All finds the binding. CodeBindingExists,
// also for an equal binding; CodeBindingLimit; CodeTenantQuota.
func (r *Repository) Create(ctx context.Context, tenant, namespace string, b Record, nowMS int64) (api.WorkerBinding, error) {
	path := storage.BindingPath{Tenant: tenant, Namespace: namespace, Name: b.Name}
	// A tenant that has reached its limit receives this error for a binding that exists.
	switch _, err := r.Get(ctx, path); {
	case err == nil:
		return api.WorkerBinding{}, exists(b.Name)
	case api.ErrorCode(err) != api.CodeBindingNotFound:
		return api.WorkerBinding{}, err
	}
	if err := storage.NewTenants(r.s).RegisterNamespace(ctx, tenant, namespace); err != nil {
		return api.WorkerBinding{}, err
	}
	if err := r.s.Client().SAdd(ctx, r.s.Keys().BindingNamespaces(), tenant+"/"+namespace).Err(); err != nil {
		return api.WorkerBinding{}, storage.Failure(ctx, "register worker binding", err)
	}
	b.Revision, b.CreatedAtMS, b.UpdatedAtMS = 1, nowMS, nowMS
	err := r.s.Taking(ctx, tenant, func() error { return r.put(ctx, path, "", &b) }, storage.One(quota.Bindings))
	if api.ErrorCode(err) == api.CodeStoreConflict {
		err = exists(b.Name)
	}
	return b.WorkerBinding, r.notify(ctx, path, err)
}

func exists(name string) error {
	return api.Errorf(api.CodeBindingExists, "worker binding %q exists", name)
}

// notify publishes a change, if err is nil, and returns err.
func (r *Repository) notify(ctx context.Context, path storage.BindingPath, err error) error {
	if err == nil {
		// Best effort: the replicas read all bindings every few seconds.
		_ = r.s.PublishChange(ctx, storage.Change{
			Kind: storage.ChangeBinding, Tenant: path.Tenant, Namespace: path.Namespace, Binding: path.Name,
		})
	}
	return err
}

// Update applies change to a binding and returns the result. With ifMatch it does so only
// if that is the binding's revision. change is called again where another caller has
// changed the binding meanwhile; it may leave the binding unchanged, and then nothing is
// written. CodeBindingNotFound, CodePreconditionFailed, and the errors of change.
func (r *Repository) Update(ctx context.Context, path storage.BindingPath, ifMatch *int64, nowMS int64, change func(*Record) error) (api.WorkerBinding, error) {
	var out api.WorkerBinding
	err := storage.RetryConflicts(ctx, func() error {
		b, raw, err := r.read(ctx, path)
		if err != nil {
			return err
		}
		if err := matches(b, ifMatch); err != nil {
			return err
		}
		if err := change(b); err != nil {
			return err
		}
		same, err := storage.Encode(b)
		if err != nil {
			return err
		}
		if same != raw {
			b.Revision, b.UpdatedAtMS = b.Revision+1, nowMS
			err = r.put(ctx, path, raw, b)
		}
		out = b.WorkerBinding
		return err
	})
	return out, r.notify(ctx, path, err)
}

// matches returns CodePreconditionFailed unless b is at the revision *ifMatch; nil accepts any.
func matches(b *Record, ifMatch *int64) error {
	if ifMatch != nil && *ifMatch != b.Revision {
		return api.Errorf(api.CodePreconditionFailed, "worker binding %q is at revision %d", b.Name, b.Revision)
	}
	return nil
}

// put writes b, with a new name of the write, if the stored record still is before, the text
// that was read, or "" for none. A lost reply is repeated by the store with the same name.
func (r *Repository) put(ctx context.Context, path storage.BindingPath, before string, b *Record) error {
	b.Write = uuid.NewString()
	raw, err := storage.Encode(b)
	if err != nil {
		return err
	}
	_, err = r.s.Script(ctx, scriptPut,
		[]string{r.s.Keys().Binding(path).Meta(), r.s.Keys().BindingIndex(path.Tenant, path.Namespace)},
		before, raw, path.Name, api.MaxBindings)
	return err
}

// Get returns a binding. CodeBindingNotFound.
func (r *Repository) Get(ctx context.Context, path storage.BindingPath) (*Record, error) {
	b, _, err := r.read(ctx, path)
	return b, err
}

// read returns a binding and the stored text, which a later write is compared with.
// CodeBindingNotFound.
func (r *Repository) read(ctx context.Context, path storage.BindingPath) (*Record, string, error) {
	raw, err := r.s.Client().Get(ctx, r.s.Keys().Binding(path).Meta()).Result()
	if errors.Is(err, redis.Nil) {
		return nil, "", notFound(path.Name)
	}
	if err != nil {
		return nil, "", storage.Failure(ctx, "read worker binding", err)
	}
	b, err := storage.Decode[Record](raw)
	return &b, raw, err
}

func notFound(name string) error {
	return api.Errorf(api.CodeBindingNotFound, "worker binding %q does not exist", name)
}

// Delete removes a binding with its status; with ifMatch, only if that is its revision.
// CodeBindingNotFound, also where it removes the remains of an interrupted Create or Delete;
// CodePreconditionFailed. After CodeStoreUnavailable the binding may be deleted.
func (r *Repository) Delete(ctx context.Context, path storage.BindingPath, ifMatch *int64) error {
	err := storage.RetryConflicts(ctx, func() error {
		b, raw, err := r.read(ctx, path)
		switch code := api.ErrorCode(err); {
		case code == api.CodeBindingNotFound && ifMatch == nil:
			// The script removes the remains of an interrupted write.
		case err != nil:
			return err
		default:
			if err := matches(b, ifMatch); err != nil {
				return err
			}
		}
		k := r.s.Keys().Binding(path)
		_, err = r.s.ScriptOnce(ctx, scriptDelete,
			[]string{k.Meta(), r.s.Keys().BindingIndex(path.Tenant, path.Namespace), k.Status()}, raw, path.Name)
		return err
	})
	if err == nil {
		r.s.Returned(ctx, path.Tenant, storage.One(quota.Bindings))
	}
	return r.notify(ctx, path, err)
}

// List returns a page of a namespace's bindings by name, after the name after. next is ""
// at the end. A page may be short and still have a next.
func (r *Repository) List(ctx context.Context, tenant, namespace, after string, limit int) (items []api.WorkerBinding, next string, err error) {
	limit = storage.PageLimit(limit)
	names, err := r.names(ctx, tenant, namespace)
	if err != nil {
		return nil, "", err
	}
	from, _ := slices.BinarySearch(names, after+"\x00")
	names = names[from:]
	names, next = storage.FirstPage(names, limit)
	found, err := r.load(ctx, tenant, namespace, names)
	items = make([]api.WorkerBinding, len(found))
	for i := range found {
		items[i] = found[i].WorkerBinding
	}
	return items, next, err
}

// names returns the names of a namespace's bindings, in order.
func (r *Repository) names(ctx context.Context, tenant, namespace string) ([]string, error) {
	names, err := r.s.Client().SMembers(ctx, r.s.Keys().BindingIndex(tenant, namespace)).Result()
	slices.Sort(names)
	return names, storage.Failure(ctx, "list worker bindings", err)
}

// load reads bindings of a namespace. It leaves out names without a record.
func (r *Repository) load(ctx context.Context, tenant, namespace string, names []string) ([]Found, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = r.s.Keys().Binding(storage.BindingPath{Tenant: tenant, Namespace: namespace, Name: name}).Meta()
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, storage.Failure(ctx, "list worker bindings", err)
	}
	out := make([]Found, 0, len(raws))
	for i, raw := range raws {
		if raw == "" {
			continue // a write was interrupted between the binding and its index
		}
		b, err := storage.Decode[Record](raw)
		if err != nil {
			return nil, err
		}
		out = append(out, Found{storage.BindingPath{Tenant: tenant, Namespace: namespace, Name: names[i]}, b})
	}
	return out, nil
}

// All reads every binding of every tenant, with two commands for each namespace that has
// ever had one. It is not one moment: a binding that is created meanwhile may be missing.
func (r *Repository) All(ctx context.Context) ([]Found, error) {
	var out []Found
	for at, err := range r.s.Places(ctx, r.s.Keys().BindingNamespaces()) {
		if err != nil {
			return nil, err
		}
		names, err := r.names(ctx, at.Tenant, at.Namespace)
		if err != nil {
			return nil, err
		}
		found, err := r.load(ctx, at.Tenant, at.Namespace, names)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}
