package child

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// confineProbe names, in the environment of a test binary started once more, the
// layer that it is to put on and try.
const confineProbe = "SOUS_TEST_CONFINE"

// TestConfineLayersAlone tries each layer that the system call filter would hide,
// in a process of its own. The filter itself is tried in package sandbox.
func TestConfineLayersAlone(t *testing.T) {
	t.Parallel()
	if layer := os.Getenv(confineProbe); layer != "" {
		t.Log("probe:", probeLayer(layer))
		return
	}
	for _, layer := range []string{"landlock", "rlimits", "capabilities"} {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestConfineLayersAlone$", "-test.v")
		cmd.Env = append(os.Environ(), confineProbe+"="+layer)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "probe: holds") {
			t.Errorf("probe of %s: got error %v and output %s, want one that says that the layer holds", layer, err, out)
		}
	}
}

// probeLayer answers "holds" or what did not.
func probeLayer(layer string) string {
	switch layer {
	case "landlock":
		if version, err := ll.LandlockGetABIVersion(); err != nil || version < 1 {
			return "holds nothing: this host has no Landlock" // and Confine says so
		}
		if held, err := forbidFiles(); err != nil || !held {
			return "forbidFiles failed: " + errors.Join(err).Error()
		}
		return onAnotherThread(func() error {
			_, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0)
			return err
		}, unix.EACCES)
	case "rlimits":
		if err := limitResources(); err != nil {
			return err.Error()
		}
		for range maxDescriptors {
			if _, err := unix.Dup(0); err != nil {
				return want(err, unix.EMFILE)
			}
		}
		return "descriptors without end"
	case "capabilities":
		if err := dropCapabilities(); err != nil {
			return err.Error()
		}
		return onAnotherThread(func() error { return unix.Sethostname([]byte("held")) }, unix.EPERM)
	}
	return "no such layer"
}

// onAnotherThread tries something on a thread that existed or was made meanwhile.
func onAnotherThread(attempt func() error, expected error) string {
	answer := make(chan error)
	go func() {
		runtime.LockOSThread()
		answer <- attempt()
	}()
	return want(<-answer, expected)
}

func want(err, expected error) string {
	if errors.Is(err, expected) {
		return "holds"
	}
	if err == nil {
		return "it was allowed"
	}
	return err.Error()
}
