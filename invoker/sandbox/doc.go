// Package sandbox runs functions in child processes: it spawns and confines them, keeps
// warm ones in a pool, hands each its program, and speaks the wire protocol with it for one
// activation at a time.
//
// A child serves one version of one function and nothing else, ever; package child is what
// runs in it. The parent never parses tenant source and never trusts what a child says:
// lengths, kinds, JSON and claims about memory are checked.
//
// The life of a child, with the frames between parent (>) and child (<):
//
//	spawned   the nursery forks it; it confines itself        < Hello
//	          RLIMIT_AS: mapped + 512 MB, to read and compile source
//	spare     it waits without a program
//	filling   Acquire hands it the program of a version       > Assign  < Ready, or < Refused
//	          RLIMIT_AS, now also the hard limit: by the version's memory limit
//	busy      Run, once or more                               > Invoke  < Log, HostCall
//	                                                          > HostReply  < Done
//	idle      Release; it builds the scope of its next activation ahead
//	ended     killed, with the reason: retired, idle, evicted, timeout, … (endReason)
//	reaped    its exit status and the first 4 KB of its stderr are read
//
// From spare on it may be killed or die in each state. A child is never reused after a
// timeout, a cancellation, a memory limit or a broken frame.
//
// The limits of an activation are enforced in two places. The child stops a script that
// passes its deadline or its memory limit, and reports that (child/control.go,
// child/memory.go). The parent kills a child that does not: 100 ms after the deadline
// (run.go), by RLIMIT_AS (program.go), and for work while it is idle, by the processor time
// that the kernel reports (pool.go). The system calls that a confined child can make are
// listed in child/confine_linux.go.
//
// For a version with a memory limit of 64 MB the numbers are
//
//	 64 MB   live at two collections in a row: the child stops the script
//	 80 MB   live at one collection: the child stops the script (1.25 times)
//	 80 MB   above the memory mapped before: the child's Go memory limit, a soft one
//	176 MB   above the address space mapped before: RLIMIT_AS, a crash (memory/memory_linux.go)
//	141 MB   of the pool's budget, for as long as the child has its program (2.2 times)
//
// The files: pool.go and acquire.go decide which child serves a call; process.go and
// package spawn are the life of one child; program.go loads a program; run.go and
// hostcalls.go carry one activation; outcome.go turns its end into a Result; check.go
// compiles a bundle that is to be published; doctor.go examines the confinement on this
// host.
package sandbox
