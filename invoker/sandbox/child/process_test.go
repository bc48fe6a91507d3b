package child

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// process is a confined child.
type process struct {
	*parent
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// spawn starts a confined child, which must end by itself when the socket does.
func spawn(t testing.TB) *process {
	t.Helper()
	ours, theirs := socketPair(t)
	file, err := theirs.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatalf("File: %v", err)
	}
	p := &process{cmd: exec.Command(sandboxtest.Executable(t), Arg)}
	p.cmd.Env, p.cmd.ExtraFiles, p.cmd.Stderr = []string{}, []*os.File{file}, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("Start: %v", err)
	}
	_ = theirs.Close()
	_ = file.Close()
	t.Cleanup(func() {
		_ = ours.Close()
		_ = p.cmd.Wait() // a crash is a test's own business
	})
	p.parent = newParent(t, ours)
	return p
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"arrays":            "() => { const a = []; for (;;) a.push(new Array(1e5).fill(1)) }",
		"strings":           "() => { let s = 'a'; for (;;) s += s + Math.random() }",
		"masked by finally": "() => { const a = []; for (;;) { try { for (;;) a.push(new Array(1e3).fill(1)) } catch {} finally { continue } } }",
		"in a promise":      "async () => { const a = []; for (;;) { await null; a.push(new Array(1e4).fill(a)) } }",
		"objects":           "() => { let o = {}; for (;;) o = { o, n: [1, 2, 3] } }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := spawn(t)
			p.source("export default " + source)
			p.begin("null", 20*time.Second)
			o := p.finish()
			if e := o.failure(t); e.Type != api.ErrMemoryLimit || !strings.Contains(e.Message, "64 MB") {
				t.Errorf("got error %+v, want %s that names 64 MB", e, api.ErrMemoryLimit)
			}
			if o.Flags&wire.FlagRetire == 0 || o.MemoryPeak < 48<<20 {
				t.Errorf("got flags %b and a peak of %d bytes, want %b and at least %d", o.Flags, o.MemoryPeak, wire.FlagRetire, 48<<20)
			}
		})
	}
}

// TestMemoryLimitWithoutCollections tests a script that holds too much memory and stops
// allocating, so that no collection runs.
func TestMemoryLimitWithoutCollections(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]string{
		"waiting": "await new Promise((r) => setTimeout(r, 5000))",
		"busy":    "let n = 0; while (n < 3e8) n++",
	} {
		for _, mb := range []int{70, 78, 90} {
			t.Run(fmt.Sprint(name, mb), func(t *testing.T) {
				t.Parallel()
				p := spawn(t)
				p.source(`export default async (mb) => { const a = []; for (let i = 0; i < mb; i++) a.push(new Uint8Array(1 << 20)); ` + then + `; return a.length }`)
				p.begin(fmt.Sprint(mb), 20*time.Second)
				if e := p.finish().failure(t); e.Type != api.ErrMemoryLimit {
					t.Errorf("got error %+v, want %s", e, api.ErrMemoryLimit)
				}
			})
		}
	}
}

// TestMemoryWithinLimit holds most of the limit, many times over.
func TestMemoryWithinLimit(t *testing.T) {
	t.Parallel()
	p := spawn(t)
	p.source(`export default () => { const a = []; for (let i = 0; i < 48; i++) a.push(new Uint8Array(1 << 20).fill(i)); return a.length }`)
	for range 5 {
		o := p.invoke("null")
		if string(o.Body) != "48" {
			t.Fatalf("got outcome %d with %s, want 48", o.Outcome, o.Body)
		}
		if o.MemoryPeak < 47<<20 || o.MemoryPeak > 128<<20 { // it counts from what was there before
			t.Errorf("got a peak of %d bytes, want %d to %d", o.MemoryPeak, 47<<20, 128<<20)
		}
	}
}

func TestProcessEndsWithItsSocket(t *testing.T) {
	t.Parallel()
	p := spawn(t)
	p.source("export default () => { for (;;); }")
	p.begin("null", time.Minute)
	_ = p.conn.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("Wait: got error %v, stderr %s, want exit status 0", err, p.stderr.String())
	}
}

// TestConfinedCompiles shows that esbuild and every global do without the calls
// that confinement takes.
func TestConfinedCompiles(t *testing.T) {
	t.Parallel()
	p := spawn(t)
	p.load(map[string]string{
		"function.ts": `import { x } from "./lib"; export default async (): Promise<unknown> => {
			console.log(new Date(), new URL("http://bücher.example"));
			return [x, crypto.randomUUID().length, new Intl_().n, structuredClone({ a: 1 }), (await crypto.subtle.digest("SHA-256", new Uint8Array(1))).byteLength] }
			class Intl_ { n = Math.round(Math.random() * 0) }`,
		"lib/index.ts": "export const x: number = 1",
	})
	if got, want := p.value("null"), `[1,36,0,{"a":1},32]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o := p.invoke("null")
	if o.CPUNanos == 0 || o.CPUNanos > uint64(time.Second) {
		t.Errorf("got %d ns of CPU, want more than 0 and at most 1 s", o.CPUNanos)
	}
}

// BenchmarkProcess is a warm call into a confined child, with what it cost the
// child of the processor from Invoke to Done.
func BenchmarkProcess(b *testing.B) {
	p := spawn(b)
	p.source(`export default async function handle(event, ctx) { return { hello: event.name } }`)
	p.value(`{"name":"Ada"}`)
	cpu := uint64(0)
	for b.Loop() {
		cpu += p.invoke(`{"name":"Ada"}`).CPUNanos
	}
	b.ReportMetric(float64(cpu)/float64(b.N), "child-ns/op")
}

// BenchmarkColdStart is a process, a compilation and a first call.
func BenchmarkColdStart(b *testing.B) {
	for b.Loop() {
		p := spawn(b)
		p.source(`export default async function handle(event, ctx) { return { hello: event.name } }`)
		p.value(`{"name":"Ada"}`)
		_ = p.conn.Close()
	}
}
