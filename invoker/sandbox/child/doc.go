// Package child is the JavaScript runtime of a sandbox process: it turns one
// function version into a script and runs its activations, one at a time, each
// in a fresh global scope. It holds no state that outlives an activation, and it
// reaches the world only by asking the parent over its one socket (package wire).
//
// Main is the life of the process; Serve is the same without the process, for
// tests.
package child
