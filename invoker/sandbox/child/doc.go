// Package child is the JavaScript runtime of a sandbox process: it turns one
// function version into a script and runs its activations, one at a time, each
// in a fresh global scope. It holds no state that outlives an activation, and it
// reaches the world only by asking the parent over its one socket (package wire).
//
// Main is the life of the process; Serve is the same without the process, for
// tests.
//
// An activation passes through these files: serve.go reads the Invoke frame; activation.go
// takes the realm that was built ahead (realm.go), calls the handler, and turns the event
// loop (loop.go) until the handler's promise settles; json_encode.go writes its result, or
// failure.go its error.
//
// A global of scripts is one file global_NAME.go, which the table in globals.go lists;
// namespace.go and class.go make its objects. Asynchronous functions answer through
// promise.go; those that need the parent send a host call (hostcall.go has an example).
package child
