// Command intruder does to the processes of its arguments what a sandbox would do to the server
// and to other sandboxes if nothing filtered its system calls. It prints a line for each
// attempt that succeeded: "PROCESS ATTEMPT".
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

func main() {
	runtime.LockOSThread() // ptrace is a thread's
	for _, arg := range os.Args[1:] {
		pid, err := strconv.Atoi(arg)
		if err != nil {
			panic(err)
		}
		for _, attempt := range []struct {
			name string
			do   func() error
		}{
			{"kill", func() error { return unix.Kill(pid, 0) }},
			{"tgkill", func() error { return unix.Tgkill(pid, pid, 0) }},
			{"ptrace", func() error { return unix.PtraceAttach(pid) }},
			{"prlimit", func() error { return unix.Prlimit(pid, unix.RLIMIT_AS, nil, &unix.Rlimit{}) }},
			{"setpriority", func() error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) }},
			{"memory", func() error { return read("/proc/%d/mem", pid) }},
			{"environment", func() error { return read("/proc/%d/environ", pid) }},
			{"open files", func() error { _, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); return err }},
			{"process_vm_readv", func() error {
				one := make([]byte, 1)
				local := []unix.Iovec{{Base: &one[0], Len: 1}}
				_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 4096, Len: 1}}, 0)
				if err == unix.EFAULT { // allowed, and nothing is there
					return nil
				}
				return err
			}},
		} {
			if attempt.do() == nil {
				fmt.Println(pid, attempt.name)
			}
		}
	}
}

func read(path string, pid int) error {
	f, err := os.Open(fmt.Sprintf(path, pid))
	if err != nil {
		return err
	}
	return f.Close()
}
