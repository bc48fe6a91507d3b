package logsink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/storage/activations"
)

// chunks is a Writer in memory; fail, if set, refuses.
type chunks struct {
	mu   sync.Mutex
	got  [][]byte
	fail error
	kept *activations.Record // of the last Keep
}

func (c *chunks) Append(_ context.Context, _ *activations.Record, chunk int, ndjson []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	if chunk != len(c.got) {
		return errors.New("chunks arrive out of order")
	}
	c.got = append(c.got, bytes.Clone(ndjson))
	return nil
}

func (c *chunks) Keep(_ context.Context, a *activations.Record) error {
	c.kept = a
	return nil
}

// attemptRecord returns the record of an attempt that begins.
func attemptRecord(n int) *activations.Record {
	return &activations.Record{Activation: api.Activation{Tenant: "t_test00", ActivationID: "id", Attempt: n}}
}

func (c *chunks) lines(t *testing.T) []api.LogLine {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []api.LogLine
	for _, chunk := range c.got {
		if len(chunk) > api.LogChunkBytes {
			t.Errorf("got a chunk of %d bytes, want at most %d", len(chunk), api.LogChunkBytes)
		}
		for line := range bytes.Lines(chunk) {
			var l api.LogLine
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatalf("json.Unmarshal of %.80q: %v", line, err)
			}
			lines = append(lines, l)
		}
	}
	return lines
}

func TestSinkEncodes(t *testing.T) {
	t.Parallel()
	w := &chunks{}
	s := New(t.Context(), w, attemptRecord(2))
	s.Add(wire.LogRecord{TSMS: 1, Level: 1, Text: []byte("plain \"text\"\nwith a line break")})
	s.Add(wire.LogRecord{TSMS: 2, Level: 3, JSON: true, Text: []byte(`{"a":[1,null]}`)})
	s.Add(wire.LogRecord{TSMS: 3, Level: 0, JSON: true, Text: []byte("{not json}\n{")})
	s.Add(wire.LogRecord{TSMS: 4, Level: 2, Text: []byte{0xff, 'x'}})
	if err := s.Drain(t.Context(), s.rec); err != nil {
		t.Fatalf("s.Drain: %v", err)
	}
	s.Add(wire.LogRecord{TSMS: 5, Text: []byte("too late")})
	got := w.lines(t)
	want := []string{`"plain \"text\"\nwith a line break"`, `{"a":[1,null]}`, `"{not json}\n{"`, `"\ufffdx"`}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i, l := range got {
		if string(l.Message) != want[i] || l.TSMS != int64(i+1) || l.Attempt != 2 {
			t.Errorf("line %d: %+v %s, want %s", i, l, l.Message, want[i])
		}
	}
	if !s.Truncated() {
		t.Error("the line after the end left no mark")
	}
}

func TestSinkBounds(t *testing.T) {
	t.Parallel()
	w := &chunks{}
	s := New(t.Context(), w, attemptRecord(1))
	s.Add(wire.LogRecord{Text: []byte(strings.Repeat("é\x01", 200<<10))}) // longer than a chunk, and escaped
	if !s.Truncated() {
		t.Error("a line longer than a chunk is not marked as cut")
	}
	for range 2000 {
		s.Add(wire.LogRecord{Text: []byte(strings.Repeat("x", 1<<10))})
	}
	if err := s.Drain(t.Context(), s.rec); err != nil {
		t.Fatalf("s.Drain: %v", err)
	}
	total := 0
	for _, c := range w.got {
		total += len(c)
	}
	w.lines(t)
	if total > api.MaxLogBytes || total < api.MaxLogBytes-4<<10 {
		t.Errorf("got %d bytes kept, want at most %d and 4 KiB less at least", total, api.MaxLogBytes)
	}
}

// A follower sees a line while the function runs, and a refused chunk is written
// by the next try.
func TestSinkFlushesWhileRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &chunks{fail: errors.New("the store is away")}
		s := New(t.Context(), w, attemptRecord(1))
		s.Add(wire.LogRecord{TSMS: 1, Text: []byte("one")})
		time.Sleep(flushDelay + time.Millisecond)
		synctest.Wait()
		w.mu.Lock()
		w.fail = nil
		w.mu.Unlock()
		s.Add(wire.LogRecord{TSMS: 2, Text: []byte("two")})
		time.Sleep(flushDelay + time.Millisecond)
		synctest.Wait()
		if got := w.lines(t); len(got) != 2 {
			t.Errorf("%d lines before the end, want both", len(got))
		}
		if err := s.Drain(t.Context(), s.rec); err != nil {
			t.Fatalf("s.Drain: %v", err)
		}
	})
}

// The lines of an activation that is not recorded while it runs stay in one chunk, and one
// goroutine waits to write it.
func TestSinkWaitsToBeShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, shown, waiting := &chunks{}, make(chan struct{}), 0
		s := New(t.Context(), w, attemptRecord(1))
		s.Ready = func(context.Context) error {
			waiting++
			<-shown
			return nil
		}
		for range 10 {
			s.Add(wire.LogRecord{Text: []byte("line")})
			time.Sleep(flushDelay + time.Millisecond)
			synctest.Wait()
		}
		if waiting != 1 {
			t.Errorf("%d writers wait, want 1", waiting)
		}
		if chunk, one := s.Only(); !one || bytes.Count(chunk, []byte("\n")) != 10 {
			t.Errorf("got %d lines in one chunk (%v), want all 10", bytes.Count(chunk, []byte("\n")), one)
		}
		close(shown)
		synctest.Wait()
	})
}

func TestSinkDrainReports(t *testing.T) {
	t.Parallel()
	away := errors.New("the store is away")
	w := &chunks{fail: away}
	s := New(t.Context(), w, attemptRecord(1))
	s.Add(wire.LogRecord{Text: []byte("one")})
	if err := s.Drain(t.Context(), s.rec); !errors.Is(err, away) {
		t.Fatalf("Drain: got error %v, want %v", err, away)
	}
	w.fail = nil
	ended := attemptRecord(1)
	if err := s.Drain(t.Context(), ended); err != nil || len(w.lines(t)) != 1 || w.kept != ended {
		t.Errorf("the second drain: got %v, %d lines, kept for %v, want 1 line for the ended record", err, len(w.got), w.kept)
	}
}

// TestSinkKeepsFailure: the line of a failure is the last one, also of a log that is full.
func TestSinkKeepsFailure(t *testing.T) {
	t.Parallel()
	w := &chunks{}
	s := New(t.Context(), w, attemptRecord(1))
	for !s.Truncated() {
		s.Add(wire.LogRecord{Level: 1, Text: bytes.Repeat([]byte("x"), 1000)})
	}
	s.Fail(nil, 7)
	s.Fail(&api.ActivationError{Type: api.ErrTimeout, Message: "too late"}, 7)
	if err := s.Drain(t.Context(), s.rec); err != nil {
		t.Fatalf("s.Drain: %v", err)
	}
	lines := w.lines(t)
	if got := lines[len(lines)-1]; got.Level != "error" || string(got.Message) != `"Timeout: too late"` || got.TSMS != 7 {
		t.Errorf("the last of %d lines: got %s %s at %d, want the failure", len(lines), got.Level, got.Message, got.TSMS)
	}
}
