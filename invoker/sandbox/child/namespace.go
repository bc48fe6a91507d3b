package child

import (
	"slices"

	"github.com/dop251/goja"
)

// row is one name that scripts can reach, and how its value is made when it is first read.
// Rows are values of Go: a table of them belongs to no realm.
type row struct {
	name string
	make func(*realm) goja.Value
}

// liveRow is a name whose value belongs to one activation.
type liveRow struct {
	name string
	of   func(*realm, *activation) goja.Value
	// unlisted leaves the name out of the keys: a read has an effect that a copy of the
	// object must not have.
	unlisted bool
}

// function makes a row's value of a Go function; length is its JavaScript length. The Go
// function throws by panic with a script value, and may use r.act only behind r.effect.
func function(name string, length int, call func(*realm, goja.FunctionCall) goja.Value) func(*realm) goja.Value {
	return func(r *realm) goja.Value {
		return r.newFunction(name, length, func(c goja.FunctionCall) goja.Value { return call(r, c) })
	}
}

// counted is function for one of WebIDL that needs an argument: without it, it throws a
// TypeError.
func counted(name string, call func(*realm, goja.FunctionCall) goja.Value) func(*realm) goja.Value {
	return function(name, 1, func(r *realm, c goja.FunctionCall) goja.Value {
		r.needs(c, 1, name)
		return call(r, c)
	})
}

// needs throws a TypeError for a call of fewer arguments than least.
func (r *realm) needs(call goja.FunctionCall, least int, name string) {
	if len(call.Arguments) < least {
		panic(r.vm.NewTypeError("%s: %d arguments are required, not %d", name, least, len(call.Arguments)))
	}
}

// newFunction makes a function object that bears its JavaScript name and length.
func (r *realm) newFunction(name string, length int, call func(goja.FunctionCall) goja.Value) *goja.Object {
	f := r.vm.ToValue(call).(*goja.Object)
	must(f.DefineDataProperty("name", r.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	if length > 0 {
		must(f.DefineDataProperty("length", r.vm.ToValue(length), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	}
	return f
}

// space is an object whose members are made when they are first read, such as cs and ctx.
// Scripts may replace and delete members, in their own activation: the next one has a new
// object.
type space struct {
	realm *realm
	rows  []row
	live  []liveRow
	// act is the activation that the object belongs to. Where it is nil, the object
	// belongs to the realm, and each read of a live row makes the value of the
	// activation that runs.
	act   *activation
	order []string              // names that scripts added
	made  map[string]goja.Value // values by name; nil for a member that was deleted
}

// newNamespace makes an object of rows, which belongs to the realm.
func (r *realm) newNamespace(rows []row, live ...liveRow) goja.Value {
	return r.vm.NewDynamicObject(&space{realm: r, rows: rows, live: live})
}

// Get returns a member, and makes it if it is a row that was not read before.
func (s *space) Get(key string) goja.Value {
	if v, ok := s.made[key]; ok {
		return v
	}
	for i := range s.rows {
		if s.rows[i].name == key {
			v := s.rows[i].make(s.realm)
			s.keep(key, v)
			return v
		}
	}
	for i := range s.live {
		if s.live[i].name == key {
			return s.ofActivation(&s.live[i])
		}
	}
	return nil
}

// ofActivation makes the value of a live row.
func (s *space) ofActivation(row *liveRow) goja.Value {
	if s.act != nil {
		v := row.of(s.realm, s.act)
		s.keep(row.name, v)
		return v
	}
	if !s.realm.effect() {
		return goja.Undefined()
	}
	return row.of(s.realm, s.realm.act)
}

// keep sets a member's value; nil deletes a row.
func (s *space) keep(key string, v goja.Value) {
	if s.made == nil {
		s.made = make(map[string]goja.Value)
	}
	s.made[key] = v
}

// find reports whether key is a row, also a deleted one.
func (s *space) find(key string) bool {
	return slices.ContainsFunc(s.rows, func(r row) bool { return r.name == key }) ||
		slices.ContainsFunc(s.live, func(r liveRow) bool { return r.name == key })
}

// Set replaces a member or adds one, as on an ordinary object.
func (s *space) Set(key string, v goja.Value) bool {
	if !s.Has(key) && !s.find(key) {
		s.order = append(s.order, key)
	}
	s.keep(key, v)
	return true
}

func (s *space) Has(key string) bool {
	v, ok := s.made[key]
	if ok {
		return v != nil
	}
	return s.find(key)
}

// Delete removes a member. A row is marked as deleted, so that it is not made again.
func (s *space) Delete(key string) bool {
	if i := slices.Index(s.order, key); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
		delete(s.made, key)
	} else if s.find(key) {
		s.keep(key, nil)
	}
	return true
}

// Keys returns the members in the order of the table, then those that scripts added.
func (s *space) Keys() []string {
	keys := make([]string, 0, len(s.rows)+len(s.live)+len(s.order))
	for _, r := range s.live {
		if !r.unlisted && s.Has(r.name) {
			keys = append(keys, r.name)
		}
	}
	for _, r := range s.rows {
		if s.Has(r.name) {
			keys = append(keys, r.name)
		}
	}
	return append(keys, s.order...)
}
