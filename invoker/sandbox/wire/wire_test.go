package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frames returns one frame of each kind.
func frames(t testing.TB) map[Kind][]byte {
	t.Helper()
	out := make(map[Kind][]byte)
	add := func(kind Kind, frame []byte, err error) {
		if err != nil {
			t.Fatalf("error: %v", err)
		}
		out[kind] = frame
	}
	message := func(kind Kind, head any, blob string) {
		frame, err := AppendMessage(nil, kind, head, []byte(blob))
		add(kind, frame, err)
	}
	message(KindHello, Hello{Layers: []string{LayerSeccomp}}, "")
	message(KindAssign, Assign{Entry: "function.js", Handler: "default", MemoryMB: 64, Env: map[string]string{"A": "b"}}, "tar")
	message(KindReady, Ready{LiveBytes: 1, MappedBytes: 2}, "script")
	message(KindRefused, Refused{Problems: []Problem{{File: "f", Line: 1, Column: 2, Message: "m"}}}, "")
	frame, err := AppendInvoke(nil, &InvokeHead{
		ActivationID: "id", DeadlineMS: 1, Attempt: 2, RequestID: "req", Ref: []byte("{}"), Trigger: []byte("{}"), Principal: []byte("{}"), LastHeartbeat: []byte("[1]"), Job: []byte(`{"id":"j"}`), Checkpoint: []byte("[2]"),
	}, []byte(`{"e":1}`))
	add(KindInvoke, frame, err)
	frame, err = AppendDone(nil, Done{Outcome: OutcomeError, Flags: FlagRetire, CPUNanos: 3, MemoryPeak: 4, Body: []byte("{}")})
	add(KindDone, frame, err)
	frame, err = AppendHostCall(nil, HostCall{ID: 7, Name: "kv.get", Head: []byte("{}"), Blob: []byte("b")})
	add(KindHostCall, frame, err)
	frame, err = AppendHostReply(nil, HostReply{ID: 7, OK: true, Head: []byte("{}"), Blob: []byte("b")})
	add(KindHostReply, frame, err)
	dst, at := BeginLog(nil)
	dst = AppendLogRecord(dst, LogRecord{TSMS: 5, Level: 2, Text: []byte("text")})
	dst = AppendLogRecord(dst, LogRecord{TSMS: 6, Level: 1, JSON: true, Text: []byte("{}")})
	frame, err = EndLog(dst, at)
	add(KindLog, frame, err)
	return out
}

// again parses a payload and writes what was understood; ok is false where the
// payload is not of its kind.
func again(kind Kind, payload []byte) (frame []byte, ok bool, err error) {
	switch kind {
	case KindHello:
		return message[Hello](kind, payload)
	case KindAssign:
		return message[Assign](kind, payload)
	case KindReady:
		return message[Ready](kind, payload)
	case KindRefused:
		return message[Refused](kind, payload)
	case KindInvoke:
		head, event, err := ParseInvoke(payload)
		if err != nil {
			return nil, false, err
		}
		frame, err = AppendInvoke(nil, &head, event)
		return frame, true, err
	case KindDone:
		d, err := ParseDone(payload)
		if err != nil {
			return nil, false, err
		}
		frame, err = AppendDone(nil, d)
		return frame, true, err
	case KindHostCall:
		c, err := ParseHostCall(payload)
		if err != nil {
			return nil, false, err
		}
		frame, err = AppendHostCall(nil, c)
		return frame, true, err
	case KindHostReply:
		r, err := ParseHostReply(payload)
		if err != nil {
			return nil, false, err
		}
		frame, err = AppendHostReply(nil, r)
		return frame, true, err
	case KindLog:
		dst, at := BeginLog(nil)
		err := ParseLog(payload, func(l LogRecord) { dst = AppendLogRecord(dst, l) })
		if err != nil {
			return nil, false, err
		}
		frame, err = EndLog(dst, at)
		return frame, true, err
	}
	return nil, false, nil
}

// message is again for heads in JSON. Different texts encode the same value, so it
// compares the decoded values.
func message[T any](kind Kind, payload []byte) ([]byte, bool, error) {
	var first, second T
	blob, err := ParseMessage(payload, &first)
	if err != nil {
		return nil, false, err
	}
	frame, err := AppendMessage(nil, kind, first, blob)
	if err != nil {
		return nil, true, err
	}
	blob2, err := ParseMessage(frame[5:], &second)
	if err == nil && (!cmp.Equal(first, second) || !bytes.Equal(blob, blob2)) {
		err = errors.New("not the same again")
	}
	return nil, true, err
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for kind, frame := range frames(t) {
		got, payload, err := NewReader(bytes.NewReader(frame)).Next()
		if err != nil || got != kind {
			t.Fatalf("Next of kind %d: got kind %d and error %v, want that kind", kind, got, err)
		}
		written, ok, err := again(kind, payload)
		if !ok || err != nil {
			t.Errorf("kind %d: got ok %v and error %v, want it parsed", kind, ok, err)
		}
		if written != nil && !bytes.Equal(written, frame) {
			t.Errorf("kind %d: %x, want %x", kind, written, frame)
		}
	}
}

// FuzzPayload feeds the parsers what a hostile peer might: they must neither
// panic nor reach outside the payload, and what they accept they must mean.
func FuzzPayload(f *testing.F) {
	for kind, frame := range frames(f) {
		f.Add(uint8(kind), frame[5:])
	}
	f.Fuzz(func(t *testing.T, kind uint8, payload []byte) {
		frame, ok, err := again(Kind(kind), payload)
		if err != nil && !ok && !errors.Is(err, ErrFrame) {
			t.Errorf("kind %d: got error %v, want %v", kind, err, ErrFrame)
		}
		if ok && err != nil {
			t.Errorf("kind %d: got it parsed with error %v, want no error", kind, err)
		}
		if frame != nil && !bytes.Equal(frame[5:], payload) {
			t.Errorf("kind %d: %x, want %x", kind, frame[5:], payload)
		}
	})
}

// FuzzReader reads a stream of anything: frames until an error, never more than
// what the stream holds.
func FuzzReader(f *testing.F) {
	var all []byte
	for _, frame := range frames(f) {
		all = append(all, frame...)
	}
	f.Add(all)
	f.Add(all[:len(all)-3])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewReader(bytes.NewReader(stream))
		read := 0
		for {
			_, payload, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrFrame) {
					t.Errorf("Next: got error %v, want %v, %v or %v", err, io.EOF, io.ErrUnexpectedEOF, ErrFrame)
				}
				if errors.Is(err, io.EOF) && read != len(stream) {
					t.Errorf("Next: got EOF after %d bytes, want it after %d", read, len(stream))
				}
				return
			}
			read += 5 + len(payload)
			if read > len(stream) {
				t.Fatalf("Next: got %d bytes read, want at most %d", read, len(stream))
			}
		}
	})
}

func TestReaderBounds(t *testing.T) {
	t.Parallel()
	length := func(n uint32) []byte { return append(binary.BigEndian.AppendUint32(nil, n), 1) }
	for name, tt := range map[string]struct {
		stream []byte
		want   error
	}{
		"end":            {nil, io.EOF},
		"cut header":     {[]byte{0, 0}, io.ErrUnexpectedEOF},
		"no kind":        {length(0), ErrFrame},
		"too long":       {length(MaxFrame + 1), ErrFrame},
		"cut payload":    {append(length(10), 1, 2), io.ErrUnexpectedEOF},
		"much announced": {length(MaxFrame), io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := NewReader(bytes.NewReader(tt.stream)).Next(); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestAnnouncedMemory: a peer that announces the largest frame and sends little
// must not make the reader allocate it.
func TestAnnouncedMemory(t *testing.T) {
	stream := append(binary.BigEndian.AppendUint32(nil, MaxFrame), 1, 2)
	got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = NewReader(bytes.NewReader(stream)).Next()
		}
	}).AllocedBytesPerOp()
	if got > 2<<20 {
		t.Errorf("Next: got %d bytes allocated, want at most %d", got, 2<<20)
	}
}

func TestAppendRefusesTooMuch(t *testing.T) {
	t.Parallel()
	before := []byte("kept")
	if out, err := AppendInvoke(before, &InvokeHead{}, make([]byte, MaxFrame)); !errors.Is(err, ErrFrame) || string(out) != "kept" {
		t.Errorf("AppendInvoke of an event over MaxFrame: got %q and error %v, want kept and %v", out, err, ErrFrame)
	}
	if _, err := AppendHostCall(nil, HostCall{Name: string(make([]byte, 256))}); !errors.Is(err, ErrFrame) {
		t.Errorf("AppendHostCall with a name of 256 bytes: got error %v, want %v", err, ErrFrame)
	}
}

// TestHeadsAreBounded, where they are written and where they are read.
func TestHeadsAreBounded(t *testing.T) {
	long := bytes.Repeat([]byte(" "), MaxHead+1)
	if _, err := AppendHostCall(nil, HostCall{Head: long}); !errors.Is(err, ErrFrame) {
		t.Errorf("AppendHostCall: got error %v, want %v", err, ErrFrame)
	}
	if _, err := AppendMessage(nil, KindHello, string(long), nil); !errors.Is(err, ErrFrame) {
		t.Errorf("AppendMessage: got error %v, want %v", err, ErrFrame)
	}
	head := appendSized(nil, long)
	if _, err := ParseHostCall(append([]byte{0, 0, 0, 1, 0}, head...)); !errors.Is(err, ErrFrame) {
		t.Errorf("ParseHostCall: got error %v, want %v", err, ErrFrame)
	}
	var h Hello
	if _, err := ParseMessage(head, &h); !errors.Is(err, ErrFrame) {
		t.Errorf("ParseMessage: got error %v, want %v", err, ErrFrame)
	}
}

func TestReaderIsBounded(t *testing.T) {
	frame, err := AppendDone(nil, Done{Body: make([]byte, 1000)})
	if err != nil {
		t.Fatalf("AppendDone: %v", err)
	}
	r := NewReader(bytes.NewReader(append(frame, frame...)))
	if _, _, err := r.Next(); err != nil {
		t.Errorf("r.Next: %v", err)
	}
	r.Bound(1000)
	if _, _, err := r.Next(); !errors.Is(err, ErrFrame) {
		t.Errorf("Next: got error %v, want %v", err, ErrFrame)
	}
}
