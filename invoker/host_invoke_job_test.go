package invoker_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
)

// A call that comes late, after its activation has ended, runs nothing, whether the
// activation was asked for or is a job's.
func TestInvokeAfterTheEnd(t *testing.T) {
	eachAlone(t, func(b *bench) {
		var late atomic.Value // what the last activation calls by
		b.engine.Overhear("kv.get", func(invoke func(context.Context, string) error) { late.Store(invoke) })
		b.work()
		b.publish("callee", `export default () => 1;`, defaults())
		config := asynchronous(1)
		config.Capabilities.Invoke = &api.InvokeCapability{Functions: []string{"callee"}}
		b.publish("caller", `export default () => cs.kv.get("n");`, config)
		for how, run := range map[string]func() api.Activation{
			"asked for": func() api.Activation { return b.invoke("caller", "null").Activation },
			"a job's":   func() api.Activation { return b.ends(b.enqueue("caller", "null")).Activation },
		} {
			if a := run(); a.Status != api.StatusSuccess {
				b.t.Fatalf("%s: got status %s, error %+v, want success", how, a.Status, a.Error)
			}
			if err := late.Load().(func(context.Context, string) error)(b.t.Context(), "callee"); api.ErrorCode(err) != api.CodeRuntimeTimeout {
				b.t.Errorf("%s: %v, want code %s", how, err, api.CodeRuntimeTimeout)
			}
		}
		if ran := b.list("callee"); len(ran) != 0 {
			b.t.Errorf("got runs of the callee %+v, want none", ran)
		}
	})
}

// A job's function may call where the caller that enqueued the job may invoke.
func TestInvokeFromAJob(t *testing.T) {
	eachWorking(t, func(b *bench) {
		tar, err := bundle.Pack(map[string][]byte{bundle.EntryJS: []byte(`export default (e, ctx) => ctx.principal.sub;`)})
		if err != nil {
			b.t.Fatalf("bundle.Pack: %v", err)
		}
		b.publishIn("other", "open", tar, bundle.Digest(tar), defaults())
		config := asynchronous(1)
		config.Capabilities.Invoke = &api.InvokeCapability{Functions: []string{"other/open"}}
		b.publish("caller", `export default () => cs.invoke("other/open").catch((e) => e.code);`, config)
		for allNamespaces, want := range map[bool]string{true: `"key-1"`, false: `"CS_AUTHZ_DENIED"`} {
			inv := b.granted("caller", "null", "invoker")
			inv.AllNamespaces = allNamespaces
			out, err := b.engine.Enqueue(b.t.Context(), inv)
			if err != nil {
				b.t.Fatalf("Enqueue: %v", err)
			}
			if a := b.ends(out.ActivationID); string(a.Result) != want {
				b.t.Errorf("all namespaces %v: %s %+v, want %s", allNamespaces, a.Result, a.Error, want)
			}
		}
	})
}
