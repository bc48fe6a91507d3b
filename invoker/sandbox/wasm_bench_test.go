package sandbox

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/codesous/sous/api"
)

// BenchmarkWebAssembly is the SHA-256 of 1 MB by the module of examples/wasm-rust: in a
// sandbox, and by wazero's interpreter alone.
func BenchmarkWebAssembly(b *testing.B) {
	binary, err := os.ReadFile("../../examples/wasm-rust/sha256.wasm")
	if err != nil {
		b.Fatalf("os.ReadFile: %v", err)
	}
	b.Run("sandbox", func(b *testing.B) {
		p := benchPool(b)
		prog := program(b, "wasm", fmt.Sprintf(`
			import { Buffer } from "node:buffer";
			const e = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(%q, "base64"))).exports;
			export default () => { e.sha256(1 << 20); return 1 }`, base64.StdEncoding.EncodeToString(binary)))
		prog.Instance = true
		for b.Loop() {
			s := acquire(b, p, prog)
			if r := s.Run(b.Context(), call("null", time.Minute)); r.Status != api.StatusSuccess {
				b.Fatalf("Run: %+v, want success", r.Error)
			}
			p.Release(s)
		}
	})
	b.Run("wazero", func(b *testing.B) {
		ctx := context.Background()
		runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
		mod, err := runtime.Instantiate(ctx, binary)
		if err != nil {
			b.Fatalf("Instantiate: %v", err)
		}
		hash := mod.ExportedFunction("sha256")
		for b.Loop() {
			if _, err := hash.Call(ctx, 1<<20); err != nil {
				b.Fatalf("sha256: %v", err)
			}
		}
	})
}
