package sandbox

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"go.uber.org/zap/zaptest"
)

// newPool makes a pool of real children that is closed, and found empty, at the test's end.
func newPool(t testing.TB, change ...func(*Config)) *Pool {
	t.Helper()
	cfg := Config{
		Executable: sandboxtest.Executable(t),
		Logger:     zaptest.NewLogger(t),
	}
	for _, c := range change {
		c(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// program makes a Program of the given files; one string is function.js alone.
func program(t testing.TB, key, source string) *Program {
	t.Helper()
	tar, err := bundle.Pack(map[string][]byte{bundle.EntryJS: []byte(source)})
	if err != nil {
		t.Fatal(err)
	}
	return &Program{
		Key: key, Digest: bundle.Digest(tar), Entry: bundle.EntryJS, MemoryMB: 64,
		Tenant: "t_test01", Namespace: "default", Function: key, Version: 1,
		Bundle: func(context.Context) ([]byte, error) { return tar, nil },
	}
}

func acquire(t testing.TB, p *Pool, prog *Program) *Sandbox {
	t.Helper()
	s, err := p.Acquire(t.Context(), prog)
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

func TestRunAnswers(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	prog := program(t, "hello", `export default (e) => ({ hello: e.name })`)
	s := acquire(t, p, prog)
	if !s.Cold() {
		t.Error("the first acquisition is not cold")
	}
	r := s.Run(t.Context(), call(`{"name":"you"}`, time.Second))
	p.Release(s)
	if r.Status != api.StatusSuccess || string(r.Value) != `{"hello":"you"}` {
		t.Fatalf("got %+v, %s", r, r.Value)
	}
	again := acquire(t, p, prog)
	if again != s || again.Cold() {
		t.Error("the second acquisition is not the warm sandbox")
	}
	p.Release(again)
}
