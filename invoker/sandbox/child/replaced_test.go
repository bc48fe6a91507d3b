package child

import (
	"encoding/json"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// A script that replaces or deletes what the language has, and then calls the platform, gets
// an exception or a value: the child survives.
func TestReplacedLanguageDoesNotCrash(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want string }{
		"Object is a number":      {`Object = 1; cs.env`, `"TypeError"`},
		"Object is deleted":       {`delete globalThis.Object; cs.env`, `"TypeError"`},
		"Object.freeze":           {`delete Object.freeze; cs.env`, `"TypeError"`},
		"then is no function":     {`Promise.prototype.then = 1; queueMicrotask(() => {})`, `"TypeError"`},
		"then is deleted":         {`delete Promise.prototype.then; queueMicrotask(() => {})`, `"TypeError"`},
		"Boolean's valueOf":       {`delete Object.prototype.valueOf; delete Boolean.prototype.valueOf; return structuredClone(new Boolean(true)) instanceof Boolean`, `true`},
		"valueOf throws":          {`const b = new Boolean(true); b.valueOf = () => { throw 1 }; return structuredClone(b) instanceof Boolean`, `true`},
		"Date is deleted":         {`const d = new Date(); delete globalThis.Date; structuredClone(d)`, `"TypeError"`},
		"a Map's iterator":        {`Map.prototype[Symbol.iterator] = function* () { yield 1 }; return structuredClone(new Map([[1, 2]])).get(1)`, `2`},
		"a Map's set":             {`delete Map.prototype.set; return structuredClone(new Map()).size`, `"DataCloneError"`},
		"a member that goes away": {`return Object.keys(structuredClone({ get a() { delete this.b; return 1 }, b: 2 })).length`, `1`},
		"a header that goes away": {`return new Headers({ get a() { delete this.b; return 1 }, b: 2 }).get("b")`, `"undefined"`},
		"Error is deleted":        {`delete globalThis.Error; return cs.kv.get(1).catch((e) => e.name)`, `"TypeError"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source(`const run = async () => { ` + tt.script + ` };
				export default async () => { try { return await run() } catch (e) { return e.name } }`)
			if o := p.invoke("null"); string(o.Body) != tt.want {
				t.Errorf("got outcome %d with body %s, want %s", o.Outcome, o.Body, tt.want)
			}
		})
	}
}

// The members of a host's error do not replace its message and its code.
func TestHostErrorsKeepTheirCode(t *testing.T) {
	t.Parallel()
	p := inProcess(t)
	p.host = func(wire.HostCall) *wire.HostReply {
		head, err := json.Marshal(wire.HostError{
			Code: "CS_X", Message: "refused", Members: json.RawMessage(`{"code":"other","message":"other","status":409}`),
		})
		if err != nil {
			t.Errorf("Marshal: %v", err)
		}
		return &wire.HostReply{Head: head}
	}
	p.source(`export default () => cs.kv.get("k").catch((e) => [e.code, e.message, e.status])`)
	if got, want := p.value("null"), `["CS_X","refused",409]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
