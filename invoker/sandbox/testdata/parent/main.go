// Command parent keeps sandboxes at work until it is killed: its argument is the
// child's executable. It prints the layers, the result of an activation and
// "ready", each on a line, and waits.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox"
)

func main() {
	if len(os.Args) == 3 && os.Args[2] == "no-namespaces" {
		must(os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0))
	}
	ctx := context.Background()
	cfg := sandbox.Config{Executable: os.Args[1]}
	layers, err := sandbox.Doctor(ctx, cfg)
	must(err)
	must(json.NewEncoder(os.Stdout).Encode(layers))
	pool, err := sandbox.New(cfg)
	must(err)
	tar, err := bundle.Pack(map[string][]byte{bundle.EntryJS: []byte(`export default (n) => {
		while (n === 1);
		if (n === 2) /^(?!x)(a+)+$/.test("a".repeat(99) + "!"); // no interrupt reaches it
		return n;
	}`)})
	must(err)
	prog := &sandbox.Program{
		Key: "key", Digest: "digest", MemoryMB: 64,
		Bundle: func(context.Context) ([]byte, error) { return tar, nil },
	}
	for _, event := range []string{"0", "1", "2"} { // the first shows that they work
		s, err := pool.Acquire(ctx, prog, nil)
		must(err)
		call := sandbox.Call{Event: []byte(event), Deadline: time.Now().Add(time.Minute)}
		if event == "0" {
			r := s.Run(ctx, call)
			must(json.NewEncoder(os.Stdout).Encode(r))
			continue // kept: busy for ever
		}
		go s.Run(ctx, call)
	}
	for pool.Stats().Spares < 2 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ready")
	select {}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
