package child

import (
	"math"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// csKV is cs.kv, the key-value store of the function's namespace. The host's half is
// hostcall/kv.go.
func csKV(r *realm) goja.Value {
	return r.newNamespace([]row{
		{"get", function("get", 1, kvGet)},
		{"set", function("set", 2, kvSet)},
		{"del", function("del", 1, kvDel)},
	})
}

// kvGet answers the value under a key, undefined if there is none. It is parsed from its
// JSON for each reading.
func kvGet(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		key := wire.KVKey{Key: r.key(call, "cs.kv.get")}
		return send(r, wire.KVGet, key, nil, func(reply wire.KVFound, value []byte) goja.Value {
			if !reply.Found {
				return goja.Undefined()
			}
			return r.parsed(value)
		})
	})
}

// kvSet sets a value: cs.kv.set("a", {n: 1}, {ttlSeconds: 60}). undefined and functions are
// refused rather than stored as nothing.
func kvSet(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		entry := wire.KVEntry{Key: r.key(call, "cs.kv.set"), TTLSeconds: r.ttl(call.Argument(2))}
		value, ok, err := r.encodeJSON(call.Argument(1), wire.MaxCallBlob)
		switch {
		case err == nil:
		case notEncodable(err):
			r.badArgument("cs.kv.set: the value is not JSON: " + err.Error())
		default:
			must(err)
		}
		if !ok {
			r.badArgument("cs.kv.set: the value must be JSON, not undefined or a function; cs.kv.del deletes")
		}
		return sendOnly(r, wire.KVSet, entry, value)
	})
}

// kvDel deletes a value and answers whether there was one.
func kvDel(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		key := wire.KVKey{Key: r.key(call, "cs.kv.del")}
		return send(r, wire.KVDel, key, nil, func(reply wire.KVDeleted, _ []byte) goja.Value {
			return r.vm.ToValue(reply.Deleted)
		})
	})
}

// key takes the first argument, which must be a string and not empty. The host knows its
// longest length.
func (r *realm) key(call goja.FunctionCall, name string) string {
	s, ok := call.Argument(0).(goja.String)
	if !ok || s.Length() == 0 {
		r.badArgument(name + ": the key must be a string that is not empty")
	}
	return s.String()
}

// ttl takes {ttlSeconds}, a whole number from 1 to wire.MaxKVTTLSeconds; 0 stands for none.
func (r *realm) ttl(options goja.Value) int64 {
	obj := r.options(options, "cs.kv.set", "ttlSeconds")
	if obj == nil {
		return 0
	}
	v := obj.Get("ttlSeconds")
	if v == nil || goja.IsUndefined(v) {
		return 0
	}
	seconds := v.ToFloat()
	switch {
	case !(seconds >= 1) || seconds != math.Trunc(seconds):
		r.badArgument("cs.kv.set: ttlSeconds must be a whole number of at least 1")
	case seconds > wire.MaxKVTTLSeconds:
		r.badArgument(wire.KVTTLRange)
	}
	return int64(seconds)
}
