package server

// CgoMend says what mends a CgoRisk.
const CgoMend = "make build, or CGO_ENABLED=0 go build ./cmd/sous"

// CgoRisk describes the risk of the program of the sandboxes at executable, "" if there is none.
// The C library of a program with cgo starts threads by clone3 and mprotect. The filter of
// system calls refuses both to sandboxes, so a child that is sous itself ends as soon as Go's
// runtime needs one more thread. The embedded child has no cgo.
func CgoRisk(executable string) string { return cgoRisk(executable, builtWithCgo) }

func cgoRisk(executable string, withCgo bool) string {
	if executable != "" || !withCgo {
		return ""
	}
	return "this program was built with cgo, whose threads the system call filter of sandboxes refuses: functions may end with SandboxCrash (pthread_create failed)"
}
