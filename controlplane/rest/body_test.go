package rest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/admission"
)

// TestBodiesTakeTheMemoryThatArrives: what a client announces reserves little, and a large body
// still arrives whole.
func TestBodiesTakeTheMemoryThatArrives(t *testing.T) {
	t.Parallel()
	const limit = 24 << 20
	body, err := readUpTo(strings.NewReader("a few bytes"), limit, limit+1, &admission.Hold{})
	if err != nil || string(body) != "a few bytes" || cap(body) > 2*reserveBytes {
		t.Errorf("readUpTo of a short body = %d bytes of %d reserved, error %v, want at most %d", len(body), cap(body), err, 2*reserveBytes)
	}
	whole := bytes.Repeat([]byte("0123456789abcdef"), limit/16)
	if body, err := readUpTo(bytes.NewReader(whole), limit, limit+1, &admission.Hold{}); err != nil || !bytes.Equal(body, whole) {
		t.Errorf("readUpTo of a large body = %d bytes, error %v, want all %d", len(body), err, limit)
	}
}

// limitedHold takes bytes up to a number.
type limitedHold struct{ left, held int64 }

func (h *limitedHold) Grow(n int64) error {
	if n > h.left {
		return errNoRoom
	}
	h.left -= n
	h.held += n
	return nil
}

var errNoRoom = errors.New("no room")

// The bytes of a buffer are taken before it grows, and a body that finds no more room ends.
func TestBodiesTakeFromTheBudget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		bytes, size int
	}{{"of known size", 1 << 20, 1 << 20}, {"of unknown size", 1 << 20, -1}, {"of exactly the reserve", reserveBytes, reserveBytes}, {"empty", 0, -1}, {"small", 10, 10}} {
		hold := &limitedHold{left: 1 << 30}
		body, err := readUpTo(iotest.HalfReader(bytes.NewReader(make([]byte, tt.bytes))), int64(tt.size), 2<<20, hold)
		if err != nil || len(body) != tt.bytes || hold.held != int64(cap(body)) {
			t.Errorf("body %s: read %d bytes, %v, with %d of a buffer of %d held, want %d bytes and the whole buffer held", tt.name, len(body), err, hold.held, cap(body), tt.bytes)
		}
		if tt.size > 0 && cap(body) > tt.size+1 {
			t.Errorf("body %s has a buffer of %d bytes, want at most one more than %d", tt.name, cap(body), tt.size)
		}
	}
	hold := &limitedHold{left: 256 << 10}
	if body, err := readUpTo(bytes.NewReader(make([]byte, 1<<20)), 1<<20, 2<<20, hold); !errors.Is(err, errNoRoom) || len(body) > 256<<10 {
		t.Errorf("a body of 1 MiB with room for 256 KiB: read %d bytes, %v, want the refusal", len(body), err)
	}
}

// deadlines is a writer that keeps its read deadline, and a body that arrives at a rate until the
// deadline.
type deadlines struct {
	http.ResponseWriter
	at time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.at = at
	return nil
}

type dripping struct {
	d     *deadlines
	left  int
	part  int
	every time.Duration
}

type tooSlow struct{ error }

func (tooSlow) Timeout() bool   { return true }
func (tooSlow) Temporary() bool { return true }

func (b *dripping) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(b.every)
	if !b.d.at.IsZero() && time.Now().After(b.d.at) {
		return 0, tooSlow{errors.New("deadline")}
	}
	n := min(b.part, b.left, len(p))
	b.left -= n
	return n, nil
}

func (b *dripping) Close() error { return nil }

// A body that arrives slowly ends after a window; one that arrives fast enough may take longer.
func TestSlowBodiesEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		size  int
		part  int
		every time.Duration
		took  time.Duration
		code  api.Code
	}{
		{"a byte each 100 ms", 100_000, 1, 100 * time.Millisecond, bodyWindow, api.CodeRequestTimeout},
		{"2 KiB a second", 80 << 10, 1 << 10, 500 * time.Millisecond, 40 * time.Second, ""},
		{"fast, then stalled", 1 << 20, 64 << 10, 9 * time.Second, bodyTimeout, api.CodeRequestTimeout},
		{"everything at once", 1 << 20, 1 << 20, time.Millisecond, time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &deadlines{ResponseWriter: httptest.NewRecorder()}
				r := httptest.NewRequest(http.MethodPost, "/", nil)
				r.ContentLength, r.Body = int64(tt.size), &dripping{w, tt.size, tt.part, tt.every}
				begin := time.Now()
				boundBody(w, r)
				body, err := ReadBody(w, r, 2<<20)
				took := time.Since(begin)
				if api.ErrorCode(err) != tt.code || tt.code == "" && len(body) != tt.size || took < tt.took-9*time.Second || took > tt.took+9*time.Second {
					t.Errorf("ReadBody = %d bytes, %v after %s, want %q after about %s", len(body), err, took, tt.code, tt.took)
				}
			})
		})
	}
}
