// Package childproc turns a re-executed sous into a sandbox child.
//
// It does so in its init function: Go initialises a package as soon as its
// imports are, in the order of import paths, so this one runs before the store,
// the HTTP stack and the command line are set up. A child spends neither time nor memory
// on those. Therefore this package imports the runtime of the child and no other package of
// the project.
package childproc

import (
	"os"

	"github.com/codesous/sous/invoker/sandbox/child"
)

func init() {
	if len(os.Args) < 2 || os.Args[1] != child.Arg {
		return
	}
	// The goroutine that runs init functions is locked to the main thread, and every
	// switch to it is a thread switch. The child runs in a goroutine that is not.
	go child.Main()
	select {}
}
