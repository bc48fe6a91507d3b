package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"
)

// wasmModule is a module whose sha256(n) hashes the first n of wasmInput bytes of its memory. It is
// read from the folder in which make bench runs.
const (
	wasmModule = "examples/wasm-rust/sha256.wasm"
	wasmInput  = 1 << 20
)

// wasmSource hashes a megabyte again and again for half a second, and answers with the number of
// hashes in a second. %s is the module in base64.
const wasmSource = `
const module = Uint8Array.from(atob("%s"), (c) => c.charCodeAt(0));
const { sha256 } = new WebAssembly.Instance(new WebAssembly.Module(module)).exports;
export default () => {
  const begin = performance.now();
  let n = 0, now = begin;
  for (; now < begin + 500; now = performance.now()) {
    sha256(1 << 20);
    n++;
  }
  return n / (now - begin) * 1000;
};`

// webAssembly compares a module in a function with the same module in wazero in this process, in
// turn. Both are interpreted, as in every sandbox.
func webAssembly(ctx context.Context, o options) ([]row, error) {
	module, err := os.ReadFile(wasmModule)
	if err != nil {
		return nil, fmt.Errorf("read the module, relative to the folder of the repository: %w", err)
	}
	b, err := newTestbed(ctx, o, profileArgs(o)...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := publish(ctx, b.sous, "wasm", fmt.Sprintf(wasmSource, base64.StdEncoding.EncodeToString(module)), `{"timeout_ms": 10000}`); err != nil {
		return nil, err
	}
	engine := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCloseOnContextDone(true))
	defer func() { _ = engine.Close(ctx) }() // the measurement is over
	instance, err := engine.Instantiate(ctx, module)
	if err != nil {
		return nil, err
	}
	hash := instance.ExportedFunction("sha256")
	share, perSecond, err := shareOf(ctx, o.rounds, "http://"+b.sous.addr+webPath("wasm"), func() error {
		_, err := hash.Call(ctx, wasmInput)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []row{{"SHA-256 of 1 MiB, multiple of wazero's own time", fmt.Sprintf("%.2f (%.1f/s)", 1/share, perSecond), "≤ 1.3", share >= 1/1.3}}, nil
}
