// Package logsink gathers the log lines of one attempt of an activation and writes them, in
// chunks.
package logsink

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/logtext"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/turns"
	"github.com/codesous/sous/invoker/vault"
	"github.com/codesous/sous/storage/activations"
)

// flushDelay is how long a line waits for others before it is written: followers see it
// by then, and a function that logs much does not write a chunk for each line.
const flushDelay = 250 * time.Millisecond

// MaxFailureWait is how long the end of an activation waits for its tenant's share of the time
// in which errors are searched for secrets.
const MaxFailureWait = time.Second

// Writer stores chunks: activations.Logs. Append replaces a chunk of the same number, so
// a write with an unknown outcome can be repeated.
type Writer interface {
	Append(ctx context.Context, a *activations.Record, chunk int, ndjson []byte) error
	Keep(ctx context.Context, a *activations.Record) error
}

// Sink gathers an activation's lines into chunks of at most LogChunkBytes and writes
// them in order. A chunk is NDJSON, one api.LogLine a line. Chunks are numbered from 0;
// those of a later lease of the same job begin at a higher number (see From), so that a
// worker which lost its lease and still writes cannot overwrite them. While the function
// runs, chunks leave in the background; Drain writes the rest, and returns an error if some
// were not written.
//
//	Add                 waits for a turn of the tenant, and appends to the open chunk
//	64 KiB, or 250 ms   the open chunk is sealed, and flush begins
//	flush               waits for Ready, then writes the sealed chunks in order
//	Fail                adds the line of a failure, also to a log that is full
//	Only, Drain         end the sink: further lines count as truncated
//
// A line belongs to exactly one chunk and never changes once its chunk is sealed. Sealed
// chunks stay in memory until they are written: at most api.MaxLogBytes.
type Sink struct {
	writer  Writer
	ctx     context.Context     // bounds the background writes of one activation
	rec     *activations.Record // as the attempt began
	Secrets *vault.Run          // must not appear in a line; nil for none
	// Ready returns when chunks may be written while the function runs; with nil they may
	// from the beginning.
	Ready func(context.Context) error
	// Admits reports whether the tenant may store log lines; with nil it may. It is asked before
	// the first line of each chunk.
	Admits func() bool
	// Charge receives the bytes of each line that is kept; with nil nothing does.
	Charge func(bytes int)
	// Logged receives each line that is kept; with nil nothing does.
	Logged func(api.LogLine)
	// Turns shares the time in which lines are searched and encoded; nil for no bound. A line
	// waits for its turn until Runs ends, but not beyond the activation's deadline.
	Turns *turns.Turns
	Runs  context.Context

	mu      sync.Mutex
	open    []byte   // the chunk being filled
	sealed  [][]byte // full chunks, in order, from number next
	next    int      // number of sealed[0]
	bytes   int      // of all lines
	cut     bool     // a line was cut or dropped
	timer   *time.Timer
	closing bool
	writing sync.Mutex // one writer at a time, so that chunks arrive in order
}

// New returns the sink of one attempt of rec. ctx applies to the writes in the
// background; it must outlive the request.
func New(ctx context.Context, writer Writer, rec *activations.Record) *Sink {
	return &Sink{writer: writer, ctx: ctx, Runs: ctx, rec: rec}
}

// From makes the chunks of a later lease of the activation's job follow those of the leases
// before it, whatever those still write: the chunks of epoch 1 begin at 0, those of epoch 2
// at 65536. It is called before the first Add.
func (s *Sink) From(epoch int64) *Sink {
	s.next = int(epoch-1) * chunksOfALease
	return s
}

// chunksOfALease bounds the chunks that one attempt writes. An attempt of the longest
// timeout, 900 s, writes at most one chunk in each flushDelay, 3,600, and MaxLogBytes
// hold 16 full ones.
const chunksOfALease = 1 << 16

// Discard ends the sink without writing its lines: the attempt lost its lease, or its end
// could not be recorded, and another attempt will follow.
func (s *Sink) Discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing, s.open, s.sealed = true, nil, nil
	if s.timer != nil {
		s.timer.Stop()
	}
}

// Add takes one record, with secrets replaced. It never waits for the store, but for a turn of
// the tenant: meanwhile the child that wrote the record is not read. A line that would exceed
// api.MaxLogBytes in total is dropped, as are one that has no turn before the end of the run and
// one after the end of the sink; all of them mark the log as truncated.
func (s *Sink) Add(r wire.LogRecord) {
	turn, err := s.Turns.Begin(s.Runs, s.rec.Tenant, time.UnixMilli(s.rec.DeadlineMS))
	if err != nil {
		s.mu.Lock()
		s.cut = true
		s.mu.Unlock()
		return
	}
	s.put(r, api.MaxLogBytes, turn)
}

// put adds a record, unless the log would have more than limit bytes. It ends the turn.
func (s *Sink) put(r wire.LogRecord, limit int, turn turns.Turn) {
	if !s.admitted() {
		turn.End()
		return
	}
	var whole bool
	r.Text, whole = s.Secrets.Line(r.Text, turn.Pause)
	shown, line, cut := s.line(r)
	turn.End()
	if !s.keep(line, cut || !whole, limit) {
		return
	}
	if s.Charge != nil {
		s.Charge(len(line))
	}
	if s.Logged != nil {
		s.Logged(shown)
	}
}

// admitted reports whether the tenant may store another line. A line that it may not store is
// dropped, which marks the log as truncated.
func (s *Sink) admitted() bool {
	s.mu.Lock()
	ask := s.Admits != nil && len(s.open) == 0
	s.mu.Unlock()
	if !ask || s.Admits() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	return false
}

// keep adds an encoded line to the open chunk, and reports whether it did.
func (s *Sink) keep(line []byte, cut bool, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = s.cut || cut
	if s.closing || s.bytes+len(line) > limit {
		s.cut = true
		return false
	}
	s.bytes += len(line)
	if len(s.open)+len(line) > api.LogChunkBytes {
		s.seal()
		go s.flush()
	}
	s.open = append(s.open, line...)
	if s.timer == nil {
		s.timer = time.AfterFunc(flushDelay, s.flushOpen)
	}
	return true
}

// line encodes r as a line of NDJSON. A message that would not fit a chunk is cut, and
// becomes a string if it was JSON; cut reports that.
func (s *Sink) line(r wire.LogRecord) (l api.LogLine, encoded []byte, cut bool) {
	message := json.RawMessage(r.Text)
	if !r.JSON || !json.Valid(r.Text) {
		message = jsonString(r.Text)
	}
	const room = api.LogChunkBytes - 256 // for the other fields
	if len(message) > room {
		text := r.Text[:min(len(r.Text), room/8)] // a byte becomes at most six
		for len(text) > 0 && !utf8.Valid(text) && len(text) > room/8-utf8.UTFMax {
			text = text[:len(text)-1]
		}
		message, cut = jsonString(text), true
	}
	l = api.LogLine{TSMS: r.TSMS, Level: wire.Levels[r.Level], Message: message, Attempt: s.rec.Attempt}
	encoded, err := api.EncodeJSON(l)
	if err != nil { // a valid message always encodes
		return l, nil, true
	}
	return l, append(encoded, '\n'), cut
}

// jsonString returns text as a JSON string; invalid UTF-8 becomes U+FFFD.
func jsonString(text []byte) json.RawMessage {
	b, err := api.EncodeJSON(string(text))
	if err != nil { // a string always encodes
		return json.RawMessage(`""`)
	}
	return b
}

// seal closes the open chunk. The caller holds mu.
func (s *Sink) seal() {
	if len(s.open) > 0 {
		s.sealed = append(s.sealed, s.open)
		s.open = nil
	}
}

// flushOpen writes the open chunk when its oldest line has waited for flushDelay. A chunk that
// may not be written yet stays open, so that it can grow until it may.
func (s *Sink) flushOpen() {
	if s.Ready != nil && s.Ready(s.ctx) != nil {
		return // the activation's end writes it
	}
	s.mu.Lock()
	s.timer = nil
	closing := s.closing
	if !closing {
		s.seal()
	}
	s.mu.Unlock()
	if !closing {
		s.flush()
	}
}

// flush writes sealed chunks. A chunk that fails stays for the next flush or the Drain:
// writing a chunk twice is harmless.
func (s *Sink) flush() {
	if s.Ready != nil {
		if err := s.Ready(s.ctx); err != nil {
			return // the activation's end writes them
		}
	}
	if err := s.write(s.ctx); err != nil {
		return // Drain tries again and reports
	}
}

// write writes the sealed chunks, one after another, until none is left or one fails. It
// takes the lock for each chunk, not for the writes, so Add does not wait for the store.
func (s *Sink) write(ctx context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	for {
		s.mu.Lock()
		if len(s.sealed) == 0 {
			s.mu.Unlock()
			return nil
		}
		chunk, number := s.sealed[0], s.next
		s.mu.Unlock()
		if err := s.writer.Append(ctx, s.rec, number, chunk); err != nil {
			return err
		}
		s.mu.Lock()
		if len(s.sealed) > 0 { // it was not discarded meanwhile
			s.sealed = slices.Delete(s.sealed, 0, 1)
		}
		s.next++
		s.mu.Unlock()
	}
}

// Drain ends the sink: no further line is taken, and when it returns nil, all chunks are written
// and live as long as next, the record that is written next. It may be called again after an
// error.
func (s *Sink) Drain(ctx context.Context, next *activations.Record) error {
	s.close()
	if err := s.write(ctx); err != nil {
		return err
	}
	return s.writer.Keep(ctx, next)
}

// Only ends the sink and returns its lines if one chunk, number 0, holds all of them; nil
// if there are none. It writes nothing: Drain may follow. ok is false if there are more
// chunks, or one was written. The recorder of package invoker writes the one chunk together with the
// terminal record.
func (s *Sink) Only() (chunk []byte, ok bool) {
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.next > 0 || len(s.sealed) > 1:
		return nil, false
	case len(s.sealed) == 0:
		return nil, true
	}
	return s.sealed[0], true
}

// close takes no further line and seals the open chunk.
func (s *Sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.seal()
}

// Truncated reports whether any line was cut or dropped.
func (s *Sink) Truncated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// Fail adds the line of a failure, at the level error, behind all others. It is the last line
// of an attempt, and has a place in a log that is full. A nil failure adds nothing.
func (s *Sink) Fail(failure *api.ActivationError, nowMS int64) {
	if failure == nil {
		return
	}
	turn := s.Turns.Await(s.rec.Tenant, MaxFailureWait)
	s.put(wire.LogRecord{TSMS: nowMS, Level: uint8(len(wire.Levels) - 1), Text: []byte(logtext.Failure(failure))}, api.MaxLogBytes+api.LogChunkBytes, turn)
}
