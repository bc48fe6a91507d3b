package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestProgressShowsABarWhileASizeIsKnown(t *testing.T) {
	t.Parallel()
	var meter transfer
	if got, want := progressLine(&meter, 80, "deploying hello", 4*time.Second, 1), "deploying hello  / 4 s"; got != want {
		t.Errorf("without a transfer: got %q, want %q", got, want)
	}
	meter.begin(4 << 20)
	meter.done.Add(1 << 20)
	want := "deploying hello  [######                  ] 25%  1 MiB of 4 MiB"
	if got := progressLine(&meter, 80, "deploying hello", time.Second, 0); got != want {
		t.Errorf("a quarter: got %q, want %q", got, want)
	}
	if got := progressLine(&meter, 20, "deploying hello", time.Second, 0); len([]rune(got)) != 19 {
		t.Errorf("got %q, want 19 characters", got)
	}
	meter.done.Add(3 << 20)
	if got, want := progressLine(&meter, 80, "deploying hello", 5*time.Second, 0), "deploying hello  | 5 s"; got != want {
		t.Errorf("after the transfer: got %q, want %q", got, want)
	}
}

func TestTransfersAreCounted(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), meteredFrom)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if n > 0 {
			return // the answer is small
		}
		w.Header().Set("Content-Length", "262144")
		_, _ = w.Write(large)
	}))
	defer server.Close()
	for _, test := range []struct {
		name string
		body []byte
		want int64
	}{{"sent", large, meteredFrom}, {"received", nil, meteredFrom}, {"small", []byte("x"), 0}} {
		var meter transfer
		c := http.Client{Transport: meteredTransport{http.DefaultTransport, &meter}}
		r, err := c.Post(server.URL, "text/plain", bytes.NewReader(test.body))
		if err != nil {
			t.Fatalf("%s: Post: %v", test.name, err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Fatalf("%s: Copy: %v", test.name, err)
		}
		_ = r.Body.Close()
		if meter.done.Load() != test.want || meter.total.Load() != test.want {
			t.Errorf("%s: got %d of %d bytes, want %d", test.name, meter.done.Load(), meter.total.Load(), test.want)
		}
	}
}

func TestProgressIsSilentWithoutATerminal(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	a := &App{Stderr: &stderr, Output: FormatText}
	failed := errors.New("failed")
	if err := a.Working("deploying", func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want the error of the work", err)
	}
	a.Quiet = true
	a.Note("a note")
	if stderr.Len() > 0 {
		t.Errorf("got %q, want nothing", stderr.String())
	}
	a.Quiet = false
	a.Note("a note")
	if !strings.Contains(stderr.String(), "a note") {
		t.Errorf("got %q, want the note", stderr.String())
	}
}

// terminal returns a terminal and the side on which what it shows can be read.
func terminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("OpenFile: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatalf("unlock the terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatalf("the number of the terminal: %v", err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("OpenFile: %v", err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return screen, program
}

// TestCountingShowsStepsOnATerminal: the bar counts steps, a note takes the place of its line, and
// nothing of it remains at the end.
func TestCountingShowsStepsOnATerminal(t *testing.T) {
	t.Parallel()
	screen, program := terminal(t)
	lines := bufio.NewReader(screen)
	until := func(want string) string {
		var shown strings.Builder
		for !strings.Contains(shown.String(), want) {
			c, err := lines.ReadByte()
			if err != nil {
				t.Errorf("got %q and %v, want %q", shown.String(), err, want)
				return shown.String()
			}
			shown.WriteByte(c)
		}
		return shown.String()
	}
	a := &App{Stderr: program, Output: FormatText}
	err := a.Counting("deploying 5 functions", 5, func(done func() int64) error {
		done()
		if got := done(); got != 2 {
			t.Errorf("the second step: got %d, want 2", got)
		}
		until("deploying 5 functions  [#########               ] 40%  2 of 5")
		a.Note("%s is done", "b")
		if got := until("is done"); !strings.HasSuffix(got, eraseLine+"b is done") {
			t.Errorf("a note: got %q, want it on an erased line", got)
		}
		return nil
	})
	if err != nil {
		t.Errorf("Counting: got %v, want no error", err)
	}
	a.Note("end")
	if got := until("end"); !strings.HasSuffix(got, eraseLine+"end") {
		t.Errorf("the end: got %q, want an erased line", got)
	}
}
