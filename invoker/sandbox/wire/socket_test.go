package wire

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sockets returns two ends of a connection, and a Socket over each.
func sockets(t *testing.T) (ends [2]*os.File, over [2]*Socket) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("unix.Socketpair: %v", err)
	}
	for i, fd := range fds {
		ends[i] = os.NewFile(uintptr(fd), "socket")
		t.Cleanup(func() { _ = ends[i].Close() })
		over[i], err = NewSocket(ends[i])
		if err != nil {
			t.Fatalf("NewSocket: %v", err)
		}
	}
	return ends, over
}

// TestSocketWritesDoNotMix, though none of them fits the socket's buffer.
func TestSocketWritesDoNotMix(t *testing.T) {
	t.Parallel()
	ends, over := sockets(t)
	const writers, size = 4, 1 << 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if n, err := over[0].Write(bytes.Repeat([]byte{byte('a' + i)}, size)); n != size || err != nil {
				t.Errorf("Write = %d, %v, want %d", n, err, size)
			}
		})
	}
	go func() {
		wg.Wait()
		_ = ends[0].Close()
	}()
	got, err := io.ReadAll(over[1])
	if err != nil || len(got) != writers*size {
		t.Fatalf("got %d bytes, %v, want %d", len(got), err, writers*size)
	}
	for at := 0; at < len(got); at += size {
		if part := got[at : at+size]; !bytes.Equal(part, bytes.Repeat(part[:1], size)) {
			t.Errorf("got bytes of several writes from %d on, want those of one", at)
		}
	}
}

func TestSocketKeepsDeadlines(t *testing.T) {
	t.Parallel()
	ends, over := sockets(t)
	if err := ends[0].SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatalf("SetDeadline: %v", err)
	}
	if _, err := over[0].Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: got %v, want %v", err, os.ErrDeadlineExceeded)
	}
	if n, err := over[0].Write(make([]byte, 8<<20)); n == 8<<20 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: got %d bytes, %v, want %v", n, err, os.ErrDeadlineExceeded)
	}
}

func TestSocketReportsTheOtherEndsClose(t *testing.T) {
	t.Parallel()
	ends, over := sockets(t)
	if err := ends[1].Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if _, err := over[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read: got %v, want %v", err, io.EOF)
	}
	if _, err := over[0].Write([]byte("x")); !errors.Is(err, unix.EPIPE) {
		t.Errorf("write: got %v, want %v", err, unix.EPIPE)
	}
}
