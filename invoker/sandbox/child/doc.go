// Package child is the JavaScript runtime of a sandbox process: it turns one function
// version into a script and runs its activations, one at a time: each in a fresh global
// scope or, where the version asks for instances, many in one scope (instance.go). Beyond
// the state of modules nothing outlives an activation, and a script reaches the world only
// by asking the parent over the one socket (package wire).
//
// Main is the life of the process; Serve is the same without the process, for tests.
//
// An activation passes through these files: serve.go reads the Invoke frame; activation.go
// takes the realm that was built ahead (realm.go), calls the handler, and turns the event
// loop (loop.go) until the handler's promise settles; json_encode.go writes its result, or
// failure.go its error.
//
// Before the first one, compile.go and modules.go make a script of the bundle, with
// esbuild, and parse it with goja.
//
// A global of scripts is one file global_NAME.go, which the table in globals.go lists;
// namespace.go and class.go make its objects. Asynchronous functions answer through
// promise.go; those that need the parent send a host call (hostcall.go has an example).
//
// Two goroutines matter. The reader (server.read) receives frames and notices the end of
// the parent. The other one runs everything that touches scripts: goja's objects may be
// used from no other goroutine. Timers, the memory watch and the reader stop a script
// through control, which goja allows from any goroutine.
//
// Go code reports errors to scripts by panics with a script value, which goja turns into
// exceptions; must passes on an error of a nested call that way, and realm.try is the way
// back to an error. An interrupt and a stack overflow are errors that no script can catch.
// They pass through all of these and end the activation.
//
// The life of the promise of a host call, for example const p = cs.kv.get("a"):
//
//	promised      runs the function's Go code; an exception rejects p
//	newDeferred   p exists, pending
//	call          the frame is written; loop.calls[7] keeps p and the function answer
//	              the script gets p and goes on, until it returns to the loop
//	turn          the HostReply 7 arrives
//	replied       removes loop.calls[7] and settles p: once, because a second reply finds
//	              no entry, as does the reply to a call that the script aborted
//	settle        answer makes the value; the reactions of p run
//
// After the end of the activation nothing is settled: its loop, with all pending calls and
// timers, is dropped when Done is sent. A reply that still comes is read and ignored
// (server.serve), and its id is never used again.
package child
