package child

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"
)

// sizes reads the process's address space from a file that was opened before
// confinement: afterwards nothing can be opened. It can be read once.
type sizes struct{ statm *os.File }

// openSizes opens the file. It tolerates a host without /proc: mapped then returns 0.
func openSizes() *sizes {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return &sizes{}
	}
	return &sizes{statm: f}
}

// mapped returns the address space in use (VmSize) in bytes, 0 if it is unknown. It closes
// the file: the second call returns 0.
func (s *sizes) mapped() int64 {
	if s.statm == nil {
		return 0
	}
	buf := make([]byte, 128)
	n, err := s.statm.Read(buf)
	closeErr := s.statm.Close()
	s.statm = nil
	if err != nil || closeErr != nil {
		return 0
	}
	first, _, _ := bytes.Cut(buf[:n], []byte(" "))
	pages, err := strconv.ParseInt(string(first), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// Names of metrics of the Go runtime (runtime/metrics), all in bytes.
const (
	metricLive     = "/gc/heap/live:bytes"                // marked by the last collection
	metricObjects  = "/memory/classes/heap/objects:bytes" // live and not yet swept
	metricTotal    = "/memory/classes/total:bytes"
	metricReleased = "/memory/classes/heap/released:bytes"
)

// gauge reads one of the Go runtime's own metrics, in bytes; 0 for a name that this Go
// release does not have.
func gauge(name string) int64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}
