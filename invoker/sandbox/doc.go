// Package sandbox runs functions in child processes: it spawns and confines
// them, keeps warm ones in a pool, hands each its program, and speaks the wire
// protocol with it for one activation at a time.
//
// A child serves one version of one function and nothing else, ever; what runs
// in it is package child. The parent never parses tenant source and never trusts
// what a child says: lengths, kinds, JSON and claims about memory are checked.
//
// The limits of an activation are enforced in two places. The child stops a script that
// passes its deadline or its memory limit, and reports that (child/control.go,
// child/memory.go). The parent kills a child that does not: by the clock (run.go), by
// RLIMIT_AS and by the processor time that the kernel reports (memory_linux.go,
// outcome.go). What a confined child cannot do at all is listed in child/confine_linux.go.
//
// The files: pool.go and acquire.go decide which child serves a call; process.go and
// spawn_linux.go are the life of one child; program.go loads a program; run.go and
// hostcalls.go carry one activation; outcome.go turns its end into a Result; check.go
// compiles a bundle that is to be published.
package sandbox
