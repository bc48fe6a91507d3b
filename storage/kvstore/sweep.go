package kvstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// page is how many keys one step of a recount or of a scan reads.
const page = 200

// Swept is the work of one step over a namespace.
type Swept struct {
	Reads   int  // commands of the store, about
	End     bool // the namespace was counted to its end
	Expired int  // entries of keys that had expired
	Mended  int  // entries that a crash left without a value, or with another size
	// Keys and Bytes are the errors of the counts: positive if they were too high.
	Keys, Bytes int64
}

// Sweep takes the next step over a namespace: it removes entries of keys that have expired, and
// counts a page of the others. The store remembers the page, so that any replica continues. At
// the end the counts are corrected. Errors: CodeStoreUnavailable.
func (r *KV) Sweep(ctx context.Context, tenant, namespace string) (done Swept, err error) {
	done.Expired, err = r.Expire(ctx, tenant, namespace)
	done.Reads++
	if err != nil || done.Expired == expireCount {
		return done, err
	}
	k := r.s.KVKeys(tenant, namespace)
	reached, err := storage.Optional(r.s.Client().HGet(ctx, k.Usage(), namespace+":w"))
	if err != nil {
		return done, storage.Failure(ctx, "recount kv", err)
	}
	names, err := r.s.LexRange(ctx, k.Index(), reached, page)
	done.Reads += 2
	if err != nil {
		return done, storage.Failure(ctx, "recount kv", err)
	}
	done.Mended, err = r.mend(ctx, tenant, namespace, names)
	done.Reads += len(names) / 10 // one STRLEN each, in one round trip
	if err != nil {
		return done, err
	}
	reply, err := r.s.ScriptOnce(ctx, scriptRecount, []string{k.Index(), k.Sizes(), k.Usage()}, namespace, page)
	done.Reads++
	if parts, ok := reply.([]any); ok && len(parts) == 3 {
		done.End = parts[0] == int64(1)
		done.Keys, _ = parts[1].(int64)
		done.Bytes, _ = parts[2].(int64)
	}
	return done, err
}

// mend corrects the entries of those names whose value is missing or has another size. The scripts
// compare once more, because a value may be written meanwhile.
func (r *KV) mend(ctx context.Context, tenant, namespace string, names []string) (mended int, err error) {
	if len(names) == 0 {
		return 0, nil
	}
	k := r.s.KVKeys(tenant, namespace)
	pipe := r.s.Client().Pipeline()
	lengths := make([]*redis.IntCmd, len(names))
	for i, name := range names {
		lengths[i] = pipe.StrLen(ctx, k.Value(name))
	}
	held := pipe.HMGet(ctx, k.Sizes(), names...)
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, storage.Failure(ctx, "recount kv", err)
	}
	for i, name := range names {
		length, size := lengths[i].Val(), held.Val()[i]
		switch {
		case length == 0: // no value is empty
			_, err = r.remove(ctx, tenant, namespace, name, true)
		case size == nil || replyInt(size) != length+int64(len(name)):
			_, err = r.adopt(ctx, tenant, namespace, name)
		default:
			continue
		}
		if err != nil {
			return mended, err
		}
		mended++
	}
	return mended, nil
}

// adopt enters a value in the index, the sizes and the counts. It reports whether its entry was
// missing or had another size.
func (r *KV) adopt(ctx context.Context, tenant, namespace, name string) (bool, error) {
	k := r.s.KVKeys(tenant, namespace)
	reply, err := r.s.Script(ctx, scriptAdopt, []string{k.Value(name), k.Index(), k.Expiry(), k.Sizes(), k.Usage()}, namespace, name, r.s.NowMS())
	n, _ := reply.(int64)
	return n > 0, err
}

// Adoption is a walk over the values of all tenants. It indexes those that an earlier release
// wrote without an index. It is not safe for concurrent use. The zero value is not
// usable; see NewAdoption.
type Adoption struct {
	kv     *KV
	nodes  []storage.Node
	begun  bool
	cursor uint64
}

// NewAdoption returns a walk over s, at its beginning.
func NewAdoption(s *storage.Store) *Adoption { return &Adoption{kv: New(s)} }

// Adopted is the work of one step of an Adoption.
type Adopted struct {
	Reads   int
	Entered int  // values
	End     bool // the walk has ended; the next step begins another one
}

// Step takes the next step. Errors: CodeStoreUnavailable.
func (a *Adoption) Step(ctx context.Context) (done Adopted, err error) {
	if !a.begun {
		a.nodes, err = a.kv.s.Masters(ctx)
		if err != nil {
			return done, err
		}
		a.begun, a.cursor = true, 0
	}
	if len(a.nodes) == 0 {
		a.begun = false
		return Adopted{End: true}, nil
	}
	node := a.nodes[0]
	found, cursor, err := node.Client.Scan(ctx, a.cursor, node.Pattern(storage.PrefixKV), page).Result()
	done.Reads = 1
	if err != nil {
		a.begun = false
		return done, storage.Failure(ctx, "scan kv", err)
	}
	a.cursor = cursor
	if cursor == 0 {
		a.nodes = a.nodes[1:]
	}
	for _, key := range found {
		entered, err := a.enter(ctx, key)
		done.Reads++
		if err != nil {
			return done, err
		}
		done.Entered += entered
	}
	if cursor == 0 && len(a.nodes) == 0 {
		a.begun, done.End = false, true
	}
	return done, nil
}

// enter indexes a value that is not indexed.
func (a *Adoption) enter(ctx context.Context, key string) (int, error) {
	s := a.kv.s
	tenant, namespace, name, ok := s.ValueOf(key)
	if !ok {
		return 0, nil
	}
	k := s.KVKeys(tenant, namespace)
	counted, err := s.Client().HExists(ctx, k.Sizes(), name).Result()
	if err != nil || counted {
		return 0, storage.Failure(ctx, "adopt kv", err)
	}
	entered, err := a.kv.adopt(ctx, tenant, namespace, name)
	if entered {
		return 1, err
	}
	return 0, err
}
