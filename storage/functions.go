package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/quota"
)

// Functions keeps the function records and each namespace's index of them. A deleted
// function keeps its record, with deleted_at_ms, and its index entry: its version numbers
// are not used again, and its activations can still be found.
type Functions struct{ s *Store }

// NewFunctions returns the functions in s.
func NewFunctions(s *Store) *Functions { return &Functions{s} }

// Create stores a new function. A deleted function of that name comes back, with its
// versions, its aliases and its version numbers, and without the counts of its calls and its last
// failure. A repeat of the same record succeeds. CodeFunctionExists, CodeTenantQuota.
func (r *Functions) Create(ctx context.Context, f api.Function) (api.Function, error) {
	f.DeletedAtMS = nil
	if err := NewTenants(r.s).RegisterNamespace(ctx, f.Tenant, f.Namespace); err != nil {
		return api.Function{}, err
	}
	raw, err := Encode(f)
	if err != nil {
		return api.Function{}, err
	}
	k := r.s.keys.function(f.Tenant, f.Namespace, f.Name)
	today := r.s.NowMS() / (24 * time.Hour).Milliseconds()
	index := r.s.keys.FunctionIndex(f.Tenant, f.Namespace)
	err = r.s.TakingNew(ctx, f.Tenant, index, f.Name, quota.Functions, func() error {
		_, err := r.s.Script(ctx, scriptFunctionCreate, []string{
			k.meta(), index,
			r.s.keys.FunctionCalls(f.Tenant, f.Namespace, f.Name, today), r.s.keys.FunctionCalls(f.Tenant, f.Namespace, f.Name, today-1),
			r.s.keys.FunctionFailure(f.Tenant, f.Namespace, f.Name), r.s.JobKeys(f.Tenant).Events(),
		}, raw, f.Name, functionChange(ctx, event.FunctionCreated, f.CreatedAtMS, f.Namespace, f.Name, "", "", event.Data{}))
		return err
	})
	if err != nil {
		return api.Function{}, err
	}
	return f, nil
}

// Get returns a function. CodeFunctionNotFound, also for a deleted one.
func (r *Functions) Get(ctx context.Context, tenant, namespace, name string) (api.Function, error) {
	f, _, err := r.read(ctx, tenant, namespace, name)
	return f, err
}

// read returns the live record and its bytes.
func (r *Functions) read(ctx context.Context, tenant, namespace, name string) (api.Function, string, error) {
	raw, err := r.s.rdb.Get(ctx, r.s.keys.function(tenant, namespace, name).meta()).Result()
	if errors.Is(err, redis.Nil) {
		return api.Function{}, "", functionNotFound(name)
	}
	if err != nil {
		return api.Function{}, "", Failure(ctx, "read function", err)
	}
	f, err := liveFunction(raw, name)
	return f, raw, err
}

func liveFunction(raw, name string) (api.Function, error) {
	f, err := Decode[api.Function](raw)
	if err == nil && f.DeletedAtMS != nil {
		err = functionNotFound(name)
	}
	return f, err
}

func functionNotFound(name string) error {
	return api.Errorf(api.CodeFunctionNotFound, "function %q does not exist", name)
}

// Delete marks a function as deleted at nowMS; its versions stay. CodeFunctionNotFound;
// CodeStoreConflict if other writers keep changing it.
func (r *Functions) Delete(ctx context.Context, tenant, namespace, name string, nowMS int64) error {
	k := r.s.keys.function(tenant, namespace, name)
	tried := false
	return RetryConflicts(ctx, func() error {
		raw, err := r.s.rdb.Get(ctx, k.meta()).Result()
		if errors.Is(err, redis.Nil) {
			return functionNotFound(name)
		}
		if err != nil {
			return Failure(ctx, "read function", err)
		}
		f, err := Decode[api.Function](raw)
		if err != nil {
			return err
		}
		if f.DeletedAtMS != nil {
			if tried && *f.DeletedAtMS == nowMS {
				return nil // an earlier try, whose answer was lost
			}
			return functionNotFound(name)
		}
		f.DeletedAtMS = &nowMS
		deleted, err := Encode(f)
		if err != nil {
			return err
		}
		tried = true
		_, err = r.s.ScriptOnce(ctx, scriptFunctionDelete, []string{k.meta(), r.s.JobKeys(tenant).Events()},
			raw, deleted, functionChange(ctx, event.FunctionDeleted, nowMS, namespace, name, "", "", event.Data{}))
		return err
	})
}

// Names returns a page of a namespace's function names in order, deleted functions
// included, after the name after. next is "" at the end.
func (r *Functions) Names(ctx context.Context, tenant, namespace, after string, limit int) (names []string, next string, err error) {
	limit = PageLimit(limit)
	names, err = r.s.LexRange(ctx, r.s.keys.FunctionIndex(tenant, namespace), after, limit+1)
	if err != nil {
		return nil, "", Failure(ctx, "list functions", err)
	}
	names, next = FirstPage(names, limit)
	return names, next, nil
}

// List returns a page of a namespace's functions by name, after the name after. next is ""
// at the end. A page may be short and still have a next.
func (r *Functions) List(ctx context.Context, tenant, namespace, after string, limit int) (items []api.Function, next string, err error) {
	limit = PageLimit(limit)
	items = make([]api.Function, 0, limit)
	for budget := ScanBudget; ; {
		names, more, err := r.Names(ctx, tenant, namespace, after, limit)
		if err != nil {
			return nil, "", err
		}
		keys := make([]string, len(names))
		for i, name := range names {
			keys[i] = r.s.keys.function(tenant, namespace, name).meta()
		}
		raws, err := r.s.GetMany(ctx, keys)
		if err != nil {
			return nil, "", Failure(ctx, "list functions", err)
		}
		for i, raw := range raws {
			if raw == "" {
				continue // a create was interrupted
			}
			f, err := Decode[api.Function](raw)
			if err != nil {
				return nil, "", err
			}
			if f.DeletedAtMS != nil {
				continue
			}
			items = append(items, f)
			if len(items) == limit && (i+1 < len(names) || more != "") {
				return items, names[i], nil
			}
		}
		budget -= len(names)
		if more == "" || budget <= 0 {
			return items, more, nil
		}
		after = more
	}
}

// Detail returns a function with its latest version and its aliases, at most
// api.MaxPageLimit of them. CodeFunctionNotFound.
func (r *Functions) Detail(ctx context.Context, tenant, namespace, name string) (api.FunctionDetail, error) {
	k := r.s.keys.function(tenant, namespace, name)
	raws, err := r.s.GetMany(ctx, []string{k.meta(), k.versionSeq()})
	if err != nil {
		return api.FunctionDetail{}, Failure(ctx, "read function", err)
	}
	if raws[0] == "" {
		return api.FunctionDetail{}, functionNotFound(name)
	}
	f, err := liveFunction(raws[0], name)
	if err != nil {
		return api.FunctionDetail{}, err
	}
	latest, err := parseSeq(raws[1])
	if err != nil {
		return api.FunctionDetail{}, err
	}
	d := api.FunctionDetail{Function: f}
	if latest > 0 {
		d.LatestVersion = &latest
	}
	d.Aliases, _, err = NewAliases(r.s).List(ctx, tenant, namespace, name, "", api.MaxPageLimit)
	return d, err
}

// parseSeq reads a version counter; "" is 0.
func parseSeq(raw string) (int64, error) {
	if raw == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read version_seq: %w", err)
	}
	return n, nil
}

// Encode returns the JSON under which a record is stored. Equal records have equal bytes:
// scripts compare records as they were read with records as they are stored.
func Encode(record any) (string, error) {
	raw, err := api.EncodeJSON(record)
	if err != nil {
		return "", fmt.Errorf("encode %T: %w", record, err)
	}
	return string(raw), nil
}

// Decode parses the JSON of a stored record.
func Decode[T any](raw string) (T, error) {
	var record T
	if err := json.Unmarshal([]byte(raw), &record); err != nil {
		return record, fmt.Errorf("decode stored %T: %w", record, err)
	}
	return record, nil
}
