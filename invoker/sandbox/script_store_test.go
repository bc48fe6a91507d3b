package sandbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
)

// memoryScripts is a ScriptStore.
type memoryScripts struct {
	mu      sync.Mutex
	scripts map[[4]string][]byte
	err     error
}

func (m *memoryScripts) Load(_ context.Context, tenant, digest, entry, handler string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scripts[[4]string{tenant, digest, entry, handler}], m.err
}

func (m *memoryScripts) Save(_ context.Context, tenant, digest, entry, handler string, script []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.scripts[[4]string{tenant, digest, entry, handler}] = script
	}
	return m.err
}

// TestScriptStore: a pool compiles nothing that another pool has compiled, and compiles
// where the store fails.
func TestScriptStore(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]func(p *Pool, prog *Program) error{
		"checked": func(p *Pool, prog *Program) error { return p.Check(t.Context(), prog) },
		"called": func(p *Pool, prog *Program) error {
			p.Release(acquire(t, p, prog))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &memoryScripts{scripts: map[[4]string][]byte{}}
			with := func(c *Config) { c.Scripts = store }
			prog := program(t, "stored", "export default (e) => e.n + 1")
			if err := load(newPool(t, with), prog); err != nil {
				t.Fatalf("load: %v", err)
			}
			keys := slices.Collect(maps.Keys(store.scripts))
			if want := [4]string{prog.Tenant, prog.Digest, prog.Entry, prog.Handler}; len(keys) != 1 || keys[0] != want {
				t.Fatalf("got scripts %v, want %v", keys, want)
			}
			compiled := prog.Bundle
			prog.Bundle = func(context.Context) ([]byte, error) { return nil, errors.New("the bundle is read again") }
			second := newPool(t, with)
			s := acquire(t, second, prog)
			defer second.Release(s)
			if r := s.Run(t.Context(), call(`{"n":1}`, time.Second)); r.Status != api.StatusSuccess || string(r.Value) != "2" {
				t.Errorf("Run of a stored script: got %s %s (%+v), want 2", r.Status, r.Value, r.Error)
			}
			store.err = errors.New("the store is down")
			prog.Bundle = compiled
			third := newPool(t, with)
			third.Release(acquire(t, third, prog))
			// A script that the child refuses is compiled again.
			store.err = nil
			good := store.scripts[keys[0]]
			store.scripts[keys[0]] = []byte("no script (")
			fourth := newPool(t, with)
			fourth.Release(acquire(t, fourth, prog))
			if got := store.scripts[keys[0]]; string(got) != string(good) {
				t.Errorf("got the stored script %q after a refusal, want %q", got, good)
			}
		})
	}
}
