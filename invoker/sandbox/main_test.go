package sandbox

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeChild is a child that breaks the protocol on demand, see testdata/fakechild.
func fakeChild(t testing.TB) func(*Config) {
	path := sandboxtest.Build(t, "./testdata/fakechild")
	return func(c *Config) { c.Executable = path }
}

// newPool makes a pool of real children that is closed, and found empty, at the test's end.
func newPool(t testing.TB, change ...func(*Config)) *Pool {
	t.Helper()
	cfg := Config{Logger: zaptest.NewLogger(t)}
	for _, c := range change {
		c(&cfg)
	}
	if cfg.Executable == "" {
		cfg.Executable = sandboxtest.Executable(t)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		if s := p.Stats(); s.Busy != 0 || s.Starting != 0 || s.Idle != 0 || s.Spares != 0 || s.ReservedBytes != 0 {
			t.Errorf("got %+v after Close, want no children and no reserved memory", s)
		}
	})
	return p
}

// program makes a Program whose only file is source.
func program(t testing.TB, key, source string) *Program {
	t.Helper()
	tar, err := bundle.Pack(map[string][]byte{bundle.EntryJS: []byte(source)})
	if err != nil {
		t.Fatalf("bundle.Pack: %v", err)
	}
	return &Program{
		Key: key, Digest: bundle.Digest(tar), Entry: bundle.EntryJS, MemoryMB: 64,
		Tenant: "t_test01", Namespace: "default", Function: key, Version: 1,
		Bundle: func(context.Context) ([]byte, error) { return tar, nil },
	}
}

// fakeProgram is a Program for the fake child, which does as handler says.
func fakeProgram(key, handler string) *Program {
	return &Program{
		Key: key, Digest: key, Handler: handler, MemoryMB: 64,
		Bundle: func(context.Context) ([]byte, error) { return []byte("a bundle"), nil },
	}
}

func acquire(t testing.TB, p *Pool, prog *Program) *Sandbox {
	t.Helper()
	s, err := p.Acquire(t.Context(), prog, nil)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return s
}

// call is a Call with the event that has d to end.
func call(event string, d time.Duration) Call {
	deadline := time.Now().Add(d)
	return Call{
		Head: wire.InvokeHead{
			ActivationID: "00000000-0000-4000-8000-000000000000",
			DeadlineMS:   deadline.UnixMilli(),
			Ref:          json.RawMessage(`{"version":1}`),
			Trigger:      json.RawMessage(`{"type":"api"}`),
			Principal:    json.RawMessage(`{"sub":"test","roles":[]}`),
			Attempt:      1,
		},
		Event:    []byte(event),
		Deadline: deadline,
	}
}

// do is a call of the fake child.
func do(what string) Call { return call(`"`+what+`"`, 5*time.Second) }
