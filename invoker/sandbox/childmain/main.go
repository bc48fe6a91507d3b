// Command childmain is the sandbox child and its nursery alone: the program that `make
// build` puts inside sous, and that tests run. It links the interpreter and nothing else of
// the server.
package main

import (
	"fmt"
	"os"

	"github.com/codesous/sous/invoker/sandbox/child"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == child.Arg {
		child.Main()
	}
	fmt.Fprintln(os.Stderr, "usage: childmain", child.Arg)
	os.Exit(2)
}
