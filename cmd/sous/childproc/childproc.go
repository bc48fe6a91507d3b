// Package childproc turns a re-executed sous into a sandbox child.
//
// It does so in its init function: Go initialises a package as soon as its
// imports are, in the order of import paths, so this one runs before the store,
// the HTTP stack and the command line are set up. A child neither pays for those
// nor holds their memory. That is why this package imports the child's runtime
// and nothing else of the project.
package childproc

import (
	"os"

	"github.com/codesous/sous/invoker/sandbox/child"
)

func init() {
	if len(os.Args) < 2 || os.Args[1] != child.Arg {
		return
	}
	// The goroutine that runs init functions is bound to the main thread; every
	// hand-over to it would be a thread switch. So the child has another.
	go child.Main()
	select {}
}
