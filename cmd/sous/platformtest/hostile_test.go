package platformtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/platformtest"
)

// hostile is a function of an untrusted tenant, and the expected outcome of its call.
type hostile struct {
	name, config, source string
	status               int      // of the web endpoint
	code                 api.Code // of its problem, "" where the function answers
	ends                 api.Status
	errorType            api.ErrorType
	body                 string // contained in the answer
}

func hostiles(redirector, inside string) []hostile {
	const wide = `{"capabilities": {"http": {"allowHosts": ["*:*"]}}}`
	fetching := func(url string) string {
		return fmt.Sprintf(`export default async () => {
  try { return "reached: " + (await fetch(%q)).status; } catch (e) { return "refused: " + e.code; }
};`, url)
	}
	const blocked = "refused: CS_RUNTIME_FETCH_BLOCKED"
	failed := func(name, source string, errorType api.ErrorType) hostile {
		return hostile{
			name: name, source: source, status: http.StatusBadGateway,
			code: api.CodeRuntimeException, ends: api.StatusError, errorType: errorType,
		}
	}
	memory := func(name, source string) hostile {
		h := failed(name, source, api.ErrMemoryLimit)
		h.code = api.CodeRuntimeMemoryLimit
		h.config = `{"timeout_ms": 20000}` // to fill a heap takes a busy machine a while
		return h
	}
	timeout := func(name, source string) hostile {
		return hostile{
			name: name, source: source, config: `{"timeout_ms": 1500}`, status: http.StatusGatewayTimeout,
			code: api.CodeRuntimeTimeout, ends: api.StatusTimeout, errorType: api.ErrTimeout,
		}
	}
	fine := func(name, config, source, body string) hostile {
		return hostile{name: name, config: config, source: source, status: http.StatusOK, ends: api.StatusSuccess, body: body}
	}
	return []hostile{
		timeout("endless-loop", `export default () => { for (;;); };`),
		timeout("endless-catch", `export default () => { for (;;) { try { for (;;); } catch {} finally { continue; } } };`),
		timeout("endless-microtasks", `export default async () => { for (;;) await null; };`),
		timeout("endless-regexp", `export default () => /^(?!x)(a+)+$/.test("a".repeat(50) + "b");`),
		timeout("endless-native", `export default () => [].includes.call({ length: 2 ** 53 - 1 }, 1);`),
		timeout("endless-module", `for (;;);
export default () => 1;`),
		timeout("timer-pending", `export default () => new Promise(() => setInterval(() => {}, 10));`),
		memory("push-forever", `export default () => { const a = []; for (;;) a.push(new Array(1e5).fill(1)); };`),
		memory("huge-string", `export default () => "a".repeat(2 ** 30).length;`),
		memory("doubling-string", `export default () => { let s = "abc"; for (;;) s += s + "d"; };`),
		memory("huge-buffer", `export default () => new Uint8Array(2 ** 31).length;`),
		failed("endless-recursion", `export default function f() { return f() + 1; }`, api.ErrException),
		failed("never-settles", `export default () => new Promise(() => {});`, api.ErrUnsettled),
		failed("throws-null", `export default () => { throw null; };`, api.ErrException),
		failed("unhandled-rejection", `export default async () => {
  Promise.reject(new Error("not awaited"));
  await new Promise((r) => setTimeout(r, 20));
  return 1;
};`, api.ErrException),
		failed("no-require", `export default () => globalThis["require"]("fs").readFileSync("/etc/passwd", "utf8");`, api.ErrException),
		failed("no-constructor-escape", `export default () => (() => {}).constructor("return process")().binding("fs");`, api.ErrException),
		fine("ten-megabytes-of-logs", "", `export default () => { for (let i = 0; i < 10240; i++) console.log("x".repeat(1024)); return "logged"; };`, "logged"),
		{
			name: "fifty-megabyte-result", source: `export default () => "x".repeat(50e6);`, config: `{"memory_mb": 512, "timeout_ms": 20000}`,
			status: http.StatusBadGateway, code: api.CodeRuntimeResultTooLarge, ends: api.StatusError, errorType: api.ErrResultTooLarge,
		},
		fine("prototype-pollution", "", `
const before = ({}).polluted;
Object.prototype.polluted = "yes";
Array.prototype.map = () => "owned";
JSON.stringify = () => "owned";
Promise.prototype.then = undefined;
export default () => ({ before: before ?? "clean", statusCode: 200, body: before ?? "clean" });`, "clean"),
		fine("metadata", wide, fetching("http://169.254.169.254/latest/meta-data/"), blocked),
		fine("loopback", wide, fetching(inside), blocked),
		fine("loopback-mapped", wide, fetching(strings.Replace(inside, "127.0.0.1", "[::ffff:127.0.0.1]", 1)), blocked),
		fine("redirect-inside", wide, fetching(redirector+"/inside"), blocked),
		fine("redirect-metadata", wide, fetching(redirector+"/metadata"), blocked),
		fine("not-declared", "", fetching("https://example.com/"), "refused: CS_RUNTIME_CAPABILITY_DENIED"),
		fine("file-url", wide, fetching("file:///etc/passwd"), "refused: "),
	}
}

// startUpstreams runs a host inside the network, and one that is allowed and
// redirects there.
func startUpstreams(t *testing.T) (redirector, inside string) {
	t.Helper()
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a function reached an internal address, want its fetch refused")
	}))
	t.Cleanup(target.Close)
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := target.URL
		if r.URL.Path == "/metadata" {
			to = "http://169.254.169.254/latest/meta-data/"
		}
		http.Redirect(w, r, to, http.StatusFound)
	}))
	_ = front.Listener.Close() // replaced by one of another address
	front.Listener = listener
	front.Start()
	t.Cleanup(front.Close)
	return front.URL, target.URL
}

// Functions of an untrusted tenant each end as documented and harm no other tenant: a
// function that is called beside them has no error and no slow answer.
func TestHostileFunctionsHarmNobody(t *testing.T) {
	redirector, inside := startUpstreams(t)
	server := platformtest.Serve(t, redis(t), "--egress-allow", "127.0.0.2/32")
	server.Publish(t, "neighbour", "", map[string]string{"function.js": `export default () => ({ ok: true });`})

	attacks := hostiles(redirector, inside)
	for _, h := range attacks {
		server.PublishUnverified(t, h.name, h.config, map[string]string{"function.js": h.source})
	}
	defer startNeighbour(t, server)()
	gate := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for _, h := range attacks {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			// Twice: the second call meets what the first may have left behind.
			for range 2 {
				h.attack(t, server)
			}
		})
	}
	wg.Wait()
}

func (h hostile) attack(t *testing.T, server *platformtest.Server) {
	answer, err := server.Web(t.Context(), h.name, nil)
	if err != nil {
		t.Errorf("call of %s: got error %v, want an answer", h.name, err)
		return
	}
	if answer.Status != h.status || answer.Code() != string(h.code) || !strings.Contains(answer.Body, h.body) {
		t.Errorf("%s: answer %d %.300s, want %d %s %s", h.name, answer.Status, answer.Body, h.status, h.code, h.body)
	}
	a, err := server.API(t).Activation(t.Context(), answer.ActivationID)
	if err != nil {
		t.Errorf("%s: activation %q: %v", h.name, answer.ActivationID, err)
		return
	}
	var errorType api.ErrorType
	if a.Error != nil {
		errorType = a.Error.Type
	}
	if a.Status != h.ends || errorType != h.errorType {
		t.Errorf("%s: ended as %s %+v, want %s %s", h.name, a.Status, a.Error, h.ends, h.errorType)
	}
	if h.name == "ten-megabytes-of-logs" && !a.LogsTruncated {
		t.Errorf("%s: logs_truncated = false, want true", h.name)
	}
}

// startNeighbour calls the neighbour fifty times a second until it is stopped.
func startNeighbour(t *testing.T, server *platformtest.Server) (stop func()) {
	t.Helper()
	if _, err := server.Web(t.Context(), "neighbour", nil); err != nil {
		t.Fatalf("Web: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var calls, slowest atomic.Int64
	call := func() {
		answer, err := server.Web(context.WithoutCancel(ctx), "neighbour", nil)
		if err != nil || answer.Status != http.StatusOK || answer.Took > 500*time.Millisecond {
			t.Errorf("call of the neighbour: %v, status %d %.200s after %s, want 200 in time", err, answer.Status, answer.Body, answer.Took)
		}
		calls.Add(1)
		for took, was := int64(answer.Took), slowest.Load(); took > was && !slowest.CompareAndSwap(was, took); {
			was = slowest.Load()
		}
	}
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				wg.Go(call)
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
		t.Logf("neighbour: %d calls, slowest %s", calls.Load(), time.Duration(slowest.Load()))
	}
}

// What names a module that is not in the bundle does not get as far as running.
func TestHostileSourceIsRefusedAtPublish(t *testing.T) {
	t.Parallel()
	server := platformtest.Serve(t, redis(t))
	for name, source := range map[string]string{
		"node-module": `import passwd from "node:/etc/passwd"; export default () => passwd;`,
		"outside":     `import passwd from "../../../../etc/passwd"; export default () => passwd;`,
		"absolute":    `import passwd from "/etc/passwd"; export default () => passwd;`,
		"nested":      "export default () => " + strings.Repeat("(", 1_000_000) + ";",
		"syntax":      "export default () => {",
	} {
		err := server.TryPublish(t, name, map[string]string{"function.js": source})
		if api.ErrorCode(err) != api.CodeValidationSource {
			t.Errorf("%s: %v, want %s", name, err, api.CodeValidationSource)
		}
	}
}

// The modules of Node.js for files and processes load, since libraries import them, and
// refuse each use.
func TestNodeModulesReachNothing(t *testing.T) {
	t.Parallel()
	server := platformtest.Serve(t, redis(t))
	server.Publish(t, "reacher", `{"authz":{"invoke_http_roles":["*"]}}`, map[string]string{"function.js": `
		import fs from "node:fs";
		import { readFile } from "node:fs/promises";
		import { execSync } from "node:child_process";
		import net from "node:net";
		const tries = {
			file: () => fs.readFileSync("/etc/passwd", "utf8"),
			promise: () => readFile("/etc/passwd", "utf8"),
			process: () => String(execSync("cat /etc/passwd")),
			socket: () => new Promise((yes, no) => net.connect(6379, "127.0.0.1").on("connect", yes).on("error", no)),
		};
		export default async () => {
			const out = {};
			for (const [name, reach] of Object.entries(tries)) {
				try { out[name] = [await reach()] } catch (e) { out[name] = e.message }
			}
			return out;
		};`})
	answer, err := server.Web(t.Context(), "reacher", nil)
	if err != nil {
		t.Fatalf("Web: %v", err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(answer.Body), &got); err != nil {
		t.Fatalf("Unmarshal of %.300s: %v", answer.Body, err)
	}
	for _, name := range []string{"file", "promise", "process", "socket"} {
		if message, ok := got[name].(string); !ok || !strings.Contains(message, "not available in functions") {
			t.Errorf("%s: got %v, want the error that it is not available in functions", name, got[name])
		}
	}
}
