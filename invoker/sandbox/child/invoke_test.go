package child

import (
	"testing"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

func TestHello(t *testing.T) {
	t.Parallel()
	p := inProcess(t).source(`export default async function handle(event, ctx) {
		console.log("hi", event.name); cs.log.info({got: event});
		return { ok: true, name: event.name, fn: ctx.function, v: ctx.version, alias: ctx.ref.alias };
	}`)
	for range 3 {
		o := p.invoke(`{"name":"Ada"}`)
		if got, want := string(o.Body), `{"ok":true,"name":"Ada","fn":"hello","v":7,"alias":"prod"}`; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		if len(o.Logs) != 2 || string(o.Logs[0].Text) != "hi Ada" || string(o.Logs[1].Text) != `{"got":{"name":"Ada"}}` {
			t.Fatalf("got logs %v, want hi Ada and the event", o.Logs)
		}
	}
}

func TestKV(t *testing.T) {
	t.Parallel()
	p := inProcess(t)
	p.host = func(c wire.HostCall) *wire.HostReply {
		if c.Name == "kv.get" {
			return &wire.HostReply{OK: true, Head: []byte(`{"found":true}`), Blob: []byte(`{"n":41}`)}
		}
		return &wire.HostReply{Head: []byte(`{"code":"CS_RUNTIME_CAPABILITY_DENIED","message":"no"}`)}
	}
	p.source(`export default async () => {
		const v = await cs.kv.get("a");
		try { await cs.kv.set("a", v) } catch (e) { return [v.n, e.code, e.message, e instanceof Error] }
	}`)
	if got, want := p.value(`null`), `[41,"CS_RUNTIME_CAPABILITY_DENIED","no",true]`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func BenchmarkInvoke(b *testing.B) {
	p := inProcess(b).source(`export default async function handle(event, ctx) { return { hello: event.name } }`)
	p.value(`{"name":"Ada"}`)
	b.ReportAllocs()
	for b.Loop() {
		p.invoke(`{"name":"Ada"}`)
	}
}
