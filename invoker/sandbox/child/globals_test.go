package child

import (
	"embed"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

//go:embed testdata/*.js testdata/interfaces/*.js testdata/wasm/assembler.js
var scripts embed.FS

// prelude holds the functions of the test scripts: check collects failed checks.
const prelude = `
const failures = [];
const same = (a, b) => Object.is(a, b) || JSON.stringify(a) === JSON.stringify(b);
export function check(what, got, want) { if (!same(got, want)) failures.push(what + ": got " + JSON.stringify(got) + ", want " + JSON.stringify(want)); }
export function throws(what, f, text) { try { f() } catch (e) { const s = String(e); if (!s.includes(text)) failures.push(what + ": threw " + s); return } failures.push(what + ": did not throw"); }
export async function rejects(what, p, text) { try { await p } catch (e) { const s = String(e); if (!s.includes(text)) failures.push(what + ": rejected with " + s); return e } failures.push(what + ": did not reject"); }
export { failures };
`

// TestGlobals runs the script of each global: testdata/NAME.js, whose default
// export checks it. Fetches are answered with what was asked for.
func TestGlobals(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata")
}

// TestInterfaces runs the script of each interface and method of ECMA-429, and of others of
// the web: testdata/interfaces/NAME.js, whose checks name the step of the specification.
func TestInterfaces(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata/interfaces")
}

// TestInterfacesHaveScripts compares the list of ECMA-429 with the scripts. Some have a script of
// another name.
func TestInterfacesHaveScripts(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]string{
		"globalThis": "self", "onerror": "self", "onunhandledrejection": "self", "onrejectionhandled": "self",
		"clearTimeout": "setTimeout", "clearInterval": "setInterval", "crypto": "Crypto", "performance": "Performance",
		"navigator.userAgent": "navigator", "WebAssembly.Exception": "WebAssembly.Tag", "WebAssembly.JSTag": "WebAssembly.Tag",
		"WebAssembly.CompileError": "WebAssembly.errors", "WebAssembly.LinkError": "WebAssembly.errors", "WebAssembly.RuntimeError": "WebAssembly.errors",
	}
	interfaces, globals := readWebAPIs(t)
	for _, i := range interfaces {
		globals = append(globals, webMember{Name: i.Name})
	}
	for _, g := range globals {
		name := g.Name
		if other, ok := elsewhere[name]; ok {
			name = other
		}
		if _, err := scripts.ReadFile("testdata/interfaces/" + name + ".js"); err != nil {
			t.Errorf("script of %s: got %v, want testdata/interfaces/%s.js", g.Name, err, name)
		}
	}
}

// runScripts runs the scripts of a folder, each in a child of its own.
func runScripts(t *testing.T, folder string) {
	t.Helper()
	names, err := fs.Glob(scripts, folder+"/*.js")
	if err != nil || len(names) == 0 {
		t.Fatalf("scripts of %s = %v, %v, want some", folder, names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(name, folder+"/"), ".js"), func(t *testing.T) {
			t.Parallel()
			runScript(t, name)
		})
	}
}

func runScript(t *testing.T, name string) {
	t.Helper()
	source, err := scripts.ReadFile(name)
	if err != nil {
		t.Fatalf("scripts.ReadFile: %v", err)
	}
	assembler, err := scripts.ReadFile("testdata/wasm/assembler.js")
	if err != nil {
		t.Fatalf("scripts.ReadFile: %v", err)
	}
	p := inProcess(t)
	p.env = map[string]string{"REGION": "eu", "__proto__": "x"}
	p.host = answer
	p.load(map[string]string{
		"function.js": `import run from "./case.js"; import { failures } from "./check.js";
			export default async () => { await run(); return failures }`,
		"case.js": string(source), "check.js": prelude, "assembler.js": string(assembler),
	})
	var failures []string
	if err := json.Unmarshal([]byte(p.value("null")), &failures); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	for _, f := range failures {
		t.Errorf("script: got failure %s, want none", f)
	}
}

// answer plays the host: it echoes fetches, keeps one key, and refuses the rest.
func answer(c wire.HostCall) *wire.HostReply {
	refused := func(code, message string) *wire.HostReply {
		head, _ := json.Marshal(wire.HostError{Code: code, Message: message})
		return &wire.HostReply{Head: head}
	}
	switch c.Name {
	case "http.fetch":
		var head network.FetchRequest
		if err := json.Unmarshal(c.Head, &head); err != nil {
			return refused("CS_INTERNAL", err.Error())
		}
		switch {
		case strings.Contains(head.URL, "/mcp/"):
			return answerMCP(head, c.Blob)
		case strings.HasSuffix(head.URL, "/never"):
			return nil
		case strings.HasSuffix(head.URL, "/denied"):
			return refused("CS_RUNTIME_CAPABILITY_DENIED", "declare http.allowHosts")
		case strings.HasSuffix(head.URL, "/json"):
			return &wire.HostReply{OK: true, Head: []byte(`{"status":201,"status_text":"Created","url":"https://a.example/final","redirected":true,"headers":[["X-Two","1"],["X-Two","2"],["Set-Cookie","a=1"],["Set-Cookie","b=2"]]}`), Blob: []byte(`{"a":[1]}`)}
		}
		echo, _ := json.Marshal(struct {
			Head network.FetchRequest `json:"head"`
			Body string               `json:"body"`
		}{head, string(c.Blob)})
		return &wire.HostReply{OK: true, Head: []byte(`{"status":200,"status_text":"OK","url":"","headers":[]}`), Blob: echo}
	case "kv.get":
		if strings.Contains(string(c.Head), `"there"`) {
			return &wire.HostReply{OK: true, Head: []byte(`{"found":true}`), Blob: []byte(`{"n":[1]}`)}
		}
		return &wire.HostReply{OK: true, Head: []byte(`{"found":false}`)}
	case "secrets.get":
		if string(c.Head) == `{"name":"stripe"}` {
			return &wire.HostReply{OK: true, Head: []byte(`{}`), Blob: []byte("sk_live \"ü\"\n€")}
		}
		return refused("CS_RUNTIME_SECRET_NOT_FOUND", "secret does not exist")
	case "kv.set":
		if string(c.Head) == `{"key":"k","ttl_seconds":60}` && string(c.Blob) == `{"a":1}` {
			return &wire.HostReply{OK: true, Head: []byte(`{}`)}
		}
		return refused("CS_X", string(c.Head)+string(c.Blob))
	case "cadence.heartbeat", "cadence.signal":
		if want := map[string]string{
			"cadence.heartbeat": `{}{"page":4}`,
			"cadence.signal":    `{"workflow":"W","domain":"d","workflow_id":"id","run_id":"r","signal":"go"}[1]`,
		}[c.Name]; string(c.Head)+string(c.Blob) != want && len(c.Blob) > 0 {
			return refused("CS_X", string(c.Head)+string(c.Blob))
		}
		return &wire.HostReply{OK: true, Head: []byte(`{}`)}
	case "cadence.start":
		if string(c.Head)+string(c.Blob) != `{"workflow":"W","domain":"d","tasklist":"l","workflow_id":"id","execution_timeout_seconds":60,"id_reuse":"reject"}{"a":1}` {
			return refused("CS_X", string(c.Head)+string(c.Blob))
		}
		return &wire.HostReply{OK: true, Head: []byte(`{"workflow_id":"id","run_id":"run"}`)}
	case "job.progress", "job.checkpoint":
		if said := string(c.Head) + string(c.Blob); !slices.Contains([]string{
			`{"order":1,"current":12.5,"total":100}`, `{"order":2,"current":3,"total":9,"message":"m"}`,
			`{"order":3}{"page":4}`, `{"order":4}null`,
		}, said) {
			return refused("CS_X", said)
		}
		return &wire.HostReply{OK: true, Head: []byte(`{}`)}
	case "step.load":
		return &wire.HostReply{OK: true, Head: []byte(`{"now_ms":1000}`), Blob: []byte(`[
			{"kind":"step","name":"recorded","n":1,"seq":1,"status":"completed","result":{"n":1}},
			{"kind":"step","name":"failed","n":1,"seq":2,"status":"failed","attempts":2,"error":{"name":"TypeError","message":"no","code":"E"}}]`)}
	case "step.record":
		return &wire.HostReply{OK: true, Head: []byte(`{}`)}
	case "step.park":
		arrived := `[{"key":"event:late#1"}]`
		switch {
		case strings.Contains(string(c.Head), `"paid"`):
			arrived = `[{"key":"event:paid#1","id":"event:1:paid","value":{"m":1}}]`
		case strings.Contains(string(c.Head), `"Pay?"`):
			arrived = `[{"key":"approval:approval#1","id":"decision:1","value":{"approved":true,"by":"key_1","comment":"ok","at_ms":1}}]`
		case strings.Contains(string(c.Head), `"name":"second"`):
			arrived = `[{"key":"approval:second#1"}]`
		}
		return &wire.HostReply{OK: true, Head: []byte(`{}`), Blob: []byte(arrived)}
	case "queue.enqueue":
		id, _ := json.Marshal(string(c.Head) + string(c.Blob))
		return &wire.HostReply{OK: true, Head: []byte(`{"id":` + string(id) + `,"state":"pending","duplicate":false}`)}
	case "invoke":
		switch {
		case strings.Contains(string(c.Head), "nothing"):
			return &wire.HostReply{OK: true, Head: []byte(`{"has_value":false}`)}
		case strings.Contains(string(c.Head), "fails"):
			head, _ := json.Marshal(wire.HostError{
				Code: "CS_RUNTIME_EXCEPTION", Message: "default/fails failed: Exception: no",
				Members: json.RawMessage(`{"activationId":"a1","status":"error","cause":{"type":"Exception","message":"no"}}`),
			})
			return &wire.HostReply{Head: head}
		}
		event := string(c.Blob)
		if event == "" {
			event = "null"
		}
		return &wire.HostReply{OK: true, Head: []byte(`{"has_value":true}`), Blob: []byte(`{"head":` + string(c.Head) + `,"event":` + event + `}`)}
	case "storage.put", "storage.bulkPut", "storage.transact":
		said, _ := json.Marshal(string(c.Blob))
		return &wire.HostReply{OK: true, Head: []byte(`{"said":` + string(said) + `}`)}
	case "storage.get":
		if strings.Contains(string(c.Blob), "full") {
			head, _ := json.Marshal(wire.HostError{
				Code: "QUOTA_EXCEEDED", Message: "no room",
				Members: json.RawMessage(`{"status":429,"quota":{"scope":"namespace","unit":"records","limit":1,"used":1}}`),
			})
			return &wire.HostReply{Head: head}
		}
		return &wire.HostReply{OK: true, Head: []byte(`{"key":"k","revision":3}`), Blob: []byte(`{"n":[1],"__proto__x":2}`)}
	case "storage.list":
		return &wire.HostReply{OK: true, Head: []byte(`{}`), Blob: []byte(`{"items":[1],"nextCursor":null}`)}
	case "storage.delete":
		return &wire.HostReply{OK: true, Head: []byte(`{}`)}
	case "ai.chat", "ai.embed", "ai.stream", "http.read", "http.cancel":
		return answerModel(c)
	case "kv.del":
		return &wire.HostReply{OK: true, Head: []byte(`{"deleted":true}`)}
	}
	return refused("CS_X", "unknown call "+c.Name)
}

// answerModel plays the models of the host. A stream is one part.
func answerModel(c wire.HostCall) *wire.HostReply {
	const events = `data: {"type":"text","text":"grüß"}` + "\n\n" + `data: {"type":"tool_call","id":"c1","name":"look","arguments":"{\"a\""}` + "\n\n" +
		`data: {"type":"tool_call","arguments":":1}"}` + "\n\n" + `data: {"type":"end","finish_reason":"stop","provider":"main","model":"m","usage":{"input_tokens":1}}` + "\n\n"
	const failing = `data: {"type":"text","text":"a"}` + "\n\n" + `data: {"type":"error","code":"CS_RUNTIME_AI_UNAVAILABLE","message":"cut off"}` + "\n\n"
	head := string(c.Head)
	switch {
	case strings.Contains(head, "limited"):
		refusal, _ := json.Marshal(wire.HostError{Code: "CS_RUNTIME_AI_RATE_LIMITED", Message: "slow down", Members: json.RawMessage(`{"retryAfterMs":1500}`)})
		return &wire.HostReply{Head: refusal}
	case c.Name == "ai.stream" && strings.Contains(head, "failing"):
		return &wire.HostReply{OK: true, Head: []byte(`{"id":100}`)}
	case c.Name == "ai.stream":
		return &wire.HostReply{OK: true, Head: []byte(`{"id":1}`)}
	case c.Name == "http.cancel":
		return &wire.HostReply{OK: true, Head: []byte(`{}`)}
	case c.Name == "http.read" && strings.Contains(head, "100"):
		return &wire.HostReply{OK: true, Head: []byte(`{"end":true}`), Blob: []byte(failing)}
	case c.Name == "http.read":
		return &wire.HostReply{OK: true, Head: []byte(`{"end":true}`), Blob: []byte(events)}
	}
	return &wire.HostReply{OK: true, Head: []byte(`{}`), Blob: []byte(`{"text":"yes","said":` + string(c.Blob) + `}`)}
}
