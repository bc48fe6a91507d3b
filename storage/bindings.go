package storage

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// BindingPath is where a worker binding stands.
type BindingPath struct{ Tenant, Namespace, Name string }

// StoredBinding is a worker binding's record. Its activities are invoked on behalf
// of whoever made it or changed it last.
type StoredBinding struct {
	api.WorkerBinding
	Principal api.Principal `json:"principal"`
	Access    api.Access    `json:"access"`
}

// FoundBinding is a binding of a walk through all.
type FoundBinding struct {
	Path BindingPath
	StoredBinding
}

// Bindings keeps the Cadence worker bindings and each namespace's index of them.
// The index is a set as the record's contract has it: lists read it whole, which
// api.MaxBindings bounds.
type Bindings struct{ s *Store }

// NewBindings gives the bindings in s.
func NewBindings(s *Store) *Bindings { return &Bindings{s} }

// Create stores a new binding, whose revision and times are given here. A repeat of
// the same record succeeds. CodeBindingExists, CodeBindingLimit.
func (r *Bindings) Create(ctx context.Context, tenant, namespace string, b StoredBinding, nowMS int64) (api.WorkerBinding, error) {
	if err := NewTenants(r.s).Register(ctx, tenant, namespace); err != nil {
		return api.WorkerBinding{}, err
	}
	if err := r.s.rdb.SAdd(ctx, keyBindingPlaces, tenant+"/"+namespace).Err(); err != nil {
		return api.WorkerBinding{}, failure(ctx, "register worker binding", err)
	}
	b.Revision, b.CreatedAtMS, b.UpdatedAtMS = 1, nowMS, nowMS
	err := r.put(ctx, BindingPath{tenant, namespace, b.Name}, "", &b)
	if api.ErrorCode(err) == api.CodeStoreConflict {
		err = api.Errorf(api.CodeBindingExists, "worker binding %q exists", b.Name)
	}
	return b.WorkerBinding, r.tell(ctx, BindingPath{tenant, namespace, b.Name}, err)
}

// tell lets the replicas know of a change that was made, and gives err back.
func (r *Bindings) tell(ctx context.Context, path BindingPath, err error) error {
	if err == nil {
		// Best effort: they read all bindings every few seconds.
		_ = r.s.PublishChange(ctx, Change{
			Kind: ChangeBinding, Tenant: path.Tenant, Namespace: path.Namespace, Binding: path.Name,
		})
	}
	return err
}

// Update changes a binding as change says, and gives what it is then. With ifMatch,
// only where that is its revision. change may be called again where others change it
// too; it may leave the binding as it is, which is no change.
// CodeBindingNotFound, CodePreconditionFailed, change's own.
func (r *Bindings) Update(ctx context.Context, path BindingPath, ifMatch *int64, nowMS int64, change func(*StoredBinding) error) (api.WorkerBinding, error) {
	var out api.WorkerBinding
	err := retryConflicts(ctx, func() error {
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
		same, err := encode(b)
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
	return out, r.tell(ctx, path, err)
}

func matches(b *StoredBinding, ifMatch *int64) error {
	if ifMatch != nil && *ifMatch != b.Revision {
		return api.Errorf(api.CodePreconditionFailed, "worker binding %q is at revision %d", b.Name, b.Revision)
	}
	return nil
}

func (r *Bindings) put(ctx context.Context, path BindingPath, before string, b *StoredBinding) error {
	raw, err := encode(b)
	if err != nil {
		return err
	}
	_, err = r.s.eval(ctx, scriptBindingPut,
		[]string{r.s.keys.binding(path).meta(), r.s.keys.bindingIndex(path.Tenant, path.Namespace)},
		before, raw, path.Name, api.MaxBindings)
	return err
}

// Get gives a binding. CodeBindingNotFound.
func (r *Bindings) Get(ctx context.Context, path BindingPath) (*StoredBinding, error) {
	b, _, err := r.read(ctx, path)
	return b, err
}

func (r *Bindings) read(ctx context.Context, path BindingPath) (*StoredBinding, string, error) {
	raw, err := r.s.rdb.Get(ctx, r.s.keys.binding(path).meta()).Result()
	if errors.Is(err, redis.Nil) {
		return nil, "", bindingNotFound(path.Name)
	}
	if err != nil {
		return nil, "", failure(ctx, "read worker binding", err)
	}
	b, err := decode[StoredBinding](raw)
	return &b, raw, err
}

func bindingNotFound(name string) error {
	return api.Errorf(api.CodeBindingNotFound, "worker binding %q does not exist", name)
}

// Delete removes a binding; with ifMatch, only where that is its revision.
// CodeBindingNotFound, CodePreconditionFailed.
func (r *Bindings) Delete(ctx context.Context, path BindingPath, ifMatch *int64) error {
	return r.tell(ctx, path, retryConflicts(ctx, func() error {
		b, raw, err := r.read(ctx, path)
		switch code := api.ErrorCode(err); {
		case code == api.CodeBindingNotFound && ifMatch == nil:
			// What a cut left of it goes all the same.
		case err != nil:
			return err
		default:
			if err := matches(b, ifMatch); err != nil {
				return err
			}
		}
		k := r.s.keys.binding(path)
		_, err = r.s.evalOnce(ctx, scriptBindingDelete,
			[]string{k.meta(), r.s.keys.bindingIndex(path.Tenant, path.Namespace), k.status()}, raw, path.Name)
		return err
	}))
}

// List is a page of a namespace's bindings by name, beginning behind after. next is
// "" at the end; a page may be short and still have one.
func (r *Bindings) List(ctx context.Context, tenant, namespace, after string, limit int) (items []api.WorkerBinding, next string, err error) {
	limit = pageLimit(limit)
	names, err := r.names(ctx, tenant, namespace)
	if err != nil {
		return nil, "", err
	}
	from, _ := slices.BinarySearch(names, after+"\x00")
	if names = names[from:]; len(names) > limit {
		names = names[:limit]
		next = names[limit-1]
	}
	found, err := r.load(ctx, tenant, namespace, names)
	items = make([]api.WorkerBinding, len(found))
	for i := range found {
		items[i] = found[i].WorkerBinding
	}
	return items, next, err
}

// names are those of a namespace's bindings, in order.
func (r *Bindings) names(ctx context.Context, tenant, namespace string) ([]string, error) {
	names, err := r.s.rdb.SMembers(ctx, r.s.keys.bindingIndex(tenant, namespace)).Result()
	slices.Sort(names)
	return names, failure(ctx, "list worker bindings", err)
}

// load reads bindings of a namespace, without those that are not there.
func (r *Bindings) load(ctx context.Context, tenant, namespace string, names []string) ([]FoundBinding, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = r.s.keys.binding(BindingPath{tenant, namespace, name}).meta()
	}
	raws, err := r.s.getMany(ctx, keys)
	if err != nil {
		return nil, failure(ctx, "list worker bindings", err)
	}
	out := make([]FoundBinding, 0, len(raws))
	for i, raw := range raws {
		if raw == "" {
			continue // a write was cut short between the binding and its index
		}
		b, err := decode[StoredBinding](raw)
		if err != nil {
			return nil, err
		}
		out = append(out, FoundBinding{BindingPath{tenant, namespace, names[i]}, b})
	}
	return out, nil
}

// All reads every binding of every tenant: two commands for each namespace that has
// ever had one.
func (r *Bindings) All(ctx context.Context) ([]FoundBinding, error) {
	var out []FoundBinding
	seen := map[string]bool{} // a scan may name a member twice
	for places, err := range r.s.setSteps(ctx, keyBindingPlaces) {
		if err != nil {
			return nil, err
		}
		for _, place := range places {
			if seen[place] {
				continue
			}
			seen[place] = true
			tenant, namespace, _ := strings.Cut(place, "/")
			names, err := r.names(ctx, tenant, namespace)
			if err != nil {
				return nil, err
			}
			found, err := r.load(ctx, tenant, namespace, names)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}
