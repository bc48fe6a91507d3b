package sandbox

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
)

// slowTypeScript are sources of at most 1,300 bytes that keep the compiler busy for minutes.
// esbuild reads a parenthesis behind a question mark as an expression, and again as the
// parameters of a function; the trials nest. It computes the texts of enums, and each of these
// is twice as long as the one before.
var slowTypeScript = map[string]string{
	"conditional expressions": "let x = " + strings.Repeat("a?(b):c=>", 40) + "d" + strings.Repeat(":e", 40),
	"functions in conditions": "let x = " + strings.Repeat("a?(b,c):d=>(", 40) + "d" + strings.Repeat("):e", 40),
	"texts that double":       doublingEnums(30),
}

// doublingEnums are n enums, each with a text of twice the length of the one before.
func doublingEnums(n int) string {
	source := "enum E0 { a = 'x' }\n"
	for i := range n {
		source += fmt.Sprintf("enum E%d { a = E%d.a + E%d.a }\n", i+1, i, i)
	}
	return source
}

// typeScript makes a Program of a TypeScript module with a handler.
func typeScript(t testing.TB, tenant, source string) *Program {
	t.Helper()
	const entry = "function.ts"
	tar, err := bundle.Pack(map[string][]byte{entry: []byte(source + "\nexport default () => 1\n")})
	if err != nil {
		t.Fatalf("bundle.Pack: %v", err)
	}
	return &Program{
		Key: tenant + "/" + bundle.Digest(tar), Digest: bundle.Digest(tar), Entry: entry, MemoryMB: 64,
		Tenant: tenant, Namespace: "default", Function: "f", Version: 1,
		Bundle: func(context.Context) ([]byte, error) { return tar, nil },
	}
}

// TestCompilingIsBoundedInProcessorTime: slow sources are refused at the limit, with the limit
// in the message, when they are published and when they are loaded. Texts that double may reach the
// limit of memory before, on a fast machine.
func TestCompilingIsBoundedInProcessorTime(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	p := newPool(t, func(c *Config) { c.Logger, c.CompileCPU, c.LoadTimeout = zap.NewNop(), limit, time.Minute })
	load := func(ctx context.Context, prog *Program) error {
		_, err := p.Acquire(ctx, prog, nil)
		return err
	}
	for name, source := range slowTypeScript {
		if len(source) > 1300 {
			t.Fatalf("%s: got %d bytes, want at most 1300", name, len(source))
		}
		for step, f := range map[string]func(context.Context, *Program) error{"Check": p.Check, "Acquire": load} {
			want := "more than 300ms of processor time"
			if step == "Acquire" {
				want = "more than 600ms of processor time"
			}
			err := f(t.Context(), typeScript(t, "t_"+step, source))
			if name == "texts that double" && err != nil && strings.Contains(err.Error(), "takes too much memory") {
				want = "takes too much memory"
			}
			if api.ErrorCode(err) != api.CodeValidationSource || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: got error %v, want %s with %q", step, name, err, api.CodeValidationSource, want)
			}
		}
	}
	if s := p.Stats(); s.Busy != 0 || s.ReservedBytes != 0 {
		t.Errorf("got %d busy and %d bytes reserved after the refusals, want 0 and 0", s.Busy, s.ReservedBytes)
	}
}

// TestLargeSourcesMayTakeLonger: each MiB of a source adds a second to the limit.
func TestLargeSourcesMayTakeLonger(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *Config) {
		c.Logger, c.CompileCPU, c.LoadTimeout = zap.NewNop(), 300*time.Millisecond, time.Minute
	})
	source := slowTypeScript["functions in conditions"] + "\n/*" + strings.Repeat("x", 1<<20) + "*/"
	want := "more than 1.3s of processor time"
	if err := p.Check(t.Context(), typeScript(t, "t_long", source)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Check: got error %v, want one with %q", err, want)
	}
}

// TestLargeBundlesCompileWithinTheLimit: 5 MB of plain code stay below the default limit by
// far. The processor time does not depend on what else the machine does.
func TestLargeBundlesCompileWithinTheLimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var source strings.Builder
	for i := 0; source.Len() < 5<<20; i++ {
		fmt.Fprintf(&source, `
export interface Order%[1]d { id: string; lines: Array<{ sku: string; amount: number }>; total?: number }
export class Orders%[1]d {
  private readonly known = new Map<string, Order%[1]d>();
  add(order: Order%[1]d, by: (a: number, b: number) => number = (a, b) => a + b): this {
    order.total = order.lines.map((line) => line.amount * %[1]d).reduce(by, 0);
    this.known.set(`+"`${order.id}/%[1]d`"+`, { ...order, lines: order.lines.filter(({ sku }) => /^[a-z]{2}-\d+$/.test(sku)) });
    return this;
  }
  async *[Symbol.asyncIterator]() { for (const [id, order] of this.known) yield { id, total: order?.total ?? 0 }; }
}
`, i)
	}
	p := newPool(t, func(c *Config) { c.Logger, c.LoadTimeout = zap.NewNop(), 5*time.Minute })
	prog := typeScript(t, "t_large", source.String()+"(globalThis as any).x = Orders1;")
	if err := p.Check(t.Context(), prog); err != nil {
		t.Errorf("Check of 5 MB: got error %v, want none", err)
	}
}
