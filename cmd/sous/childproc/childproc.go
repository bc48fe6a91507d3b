//go:build !sandboxchild

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
