package child

import (
	"io"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// flushBytes is the size, in bytes, at which the open Log frame is written without being
// asked. Others are written when a frame follows them, when the loop waits, and after
// logInterval.
const flushBytes = 16 << 10

// link writes frames, several at a time if they come together. Only the goroutine that runs
// scripts uses it, so frames leave in the order of the script's calls: a log line before a
// host call arrives before it.
type link struct {
	w     io.Writer
	out   []byte // whole frames, not yet written
	logs  []byte // records of the Log frame that is open, header included
	logAt int
	err   error // the first failed write; nothing is written after it
}

// keepBytes bounds the buffer that stays between writes.
const keepBytes = 256 << 10

// flush writes everything that waits. Errors: that of the first write that failed, again at
// each call.
func (l *link) flush() error {
	l.closeLogs()
	if l.err == nil && len(l.out) > 0 {
		_, l.err = l.w.Write(l.out)
	}
	l.out = l.out[:0]
	if cap(l.out) > keepBytes {
		l.out = nil
	}
	return l.err
}

// message writes a frame with a JSON head, after the frames that wait.
func (l *link) message(kind wire.Kind, head any, blob []byte) error {
	return l.send(func(dst []byte) ([]byte, error) { return wire.AppendMessage(dst, kind, head, blob) })
}

// send writes the frame that add appends, after the frames that wait.
//
// An error of add leaves the frames before it in place; an error of the write is the link's
// end.
func (l *link) send(add func(dst []byte) ([]byte, error)) error {
	l.closeLogs()
	out, err := add(l.out)
	if err != nil {
		return err // the frame alone is refused; the link is whole
	}
	l.out = out
	return l.flush()
}

// log adds a record to the open Log frame; records travel together.
func (l *link) log(r wire.LogRecord) {
	if l.logs == nil {
		l.logs, l.logAt = wire.BeginLog(l.logs)
	}
	l.logs = wire.AppendLogRecord(l.logs, r)
	if len(l.logs) >= flushBytes {
		_ = l.flush() // kept in l.err; the next send reports it
	}
}

// closeLogs ends the open Log frame, if there is one, behind the frames that wait.
func (l *link) closeLogs() {
	if l.logs == nil {
		return
	}
	frame, err := wire.EndLog(l.logs, l.logAt)
	if err == nil {
		l.out = append(l.out, frame...)
	} else if l.err == nil {
		l.err = err
	}
	l.logs = nil
}
