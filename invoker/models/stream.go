package models

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage/providers/routes"
)

// Stream asks a model, and returns its answer as server-sent events of ai.Delta, while it arrives. It
// returns when the first of them is there: until then a failure of a provider leads to a retry or to the
// next target. Later ones are the last event. The caller closes the stream, which also ends the
// request; what was used until then is recorded. Errors: as those of Chat.
func (c *Client) Stream(ctx context.Context, who *Caller, raw []byte, provider string) (io.ReadCloser, error) {
	ctx, cancel := who.bounded(ctx)
	req, of, err := parseChat(raw, provider, who)
	var targets []routes.Target
	if err == nil {
		targets, err = c.targets(ctx, who.Tenant, req.Provider, req.Model, of)
	}
	var s *stream
	if err == nil {
		err = c.run(ctx, who, targets, of.amounts(), func(ctx context.Context, a *attempt) error {
			next := &stream{c: c, ctx: ctx, cancel: cancel, who: who, attempt: a, prompt: raw, of: of, phase: req.Phase, reader: protocolOf(a.Provider).reader()}
			err := next.begin(req)
			if err != nil {
				c.log(who, a, "stream", c.cutOff(ctx, who, a, next.used(), req.Phase), err, raw, nil)
				return err
			}
			s = next
			return nil
		})
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return s, nil
}

// stream is a streamed answer. One goroutine reads and closes it.
type stream struct {
	c       *Client
	ctx     context.Context //nolint:containedctx // the call's, until Close
	cancel  context.CancelFunc
	who     *Caller
	attempt *attempt
	prompt  []byte
	of      size
	phase   string

	exchange *exchange
	events   *events
	reader   eventReader

	out       bytes.Buffer // events that were not read yet
	text      []byte       // the answer so far, for the log and the estimate, at most maxLogged bytes
	size      int          // of the whole answer
	ended     bool         // the last event is in out
	finishing sync.Once
}

// begin sends the request and waits for the first part of the answer.
func (s *stream) begin(req *ai.Chat) error {
	one := *req
	one.Model = s.attempt.Model
	path, fields, err := protocolOf(s.attempt.Provider).chat(s.attempt.Provider, &one, true)
	if err != nil {
		return err
	}
	head, cancel := context.WithCancelCause(s.ctx)
	late := time.AfterFunc(time.Duration(s.attempt.Provider.TimeoutMS)*time.Millisecond, func() { cancel(errTooLong) })
	s.ctx = head
	s.exchange, err = s.c.open(head, s.who, s.attempt, path, fields)
	if err != nil {
		late.Stop()
		cancel(nil)
		return err
	}
	s.events = newEvents(s.exchange.body)
	for err == nil && s.out.Len() == 0 && !s.ended {
		err = s.step()
	}
	if err != nil || !late.Stop() && s.out.Len() == 0 {
		_ = s.exchange.body.Close() // it is given up
		cancel(nil)
		return err
	}
	all := s.cancel
	s.cancel = func() { cancel(nil); all() }
	return nil
}

// step reads the next event of the provider, and writes the deltas to out. Errors: as those of open.
func (s *stream) step() error {
	e, err := s.events.next()
	state := s.reader.state()
	if errors.Is(err, io.EOF) {
		if state.finish != "" { // some servers end without their last event
			s.end()
			return nil
		}
		return &failure{kind: failing, provider: s.attempt.Provider.Name, reason: "its answer was cut off"}
	}
	if err != nil {
		var coded *api.Error
		if errors.As(err, &coded) {
			return err
		}
		return s.c.lost(s.ctx, s.who.Explain(s.ctx, err))
	}
	e.data = s.exchange.clean(e.data)
	deltas, end, err := s.reader.event(e)
	if err != nil {
		return err
	}
	for i := range deltas {
		s.note(&deltas[i])
		s.write(&deltas[i])
	}
	if end {
		s.end()
	}
	return nil
}

// note keeps the beginning of the answer, and its size.
func (s *stream) note(d *ai.Delta) {
	s.size += len(d.Text) + len(d.Arguments)
	if s.attempt.Provider.Log == ai.LogFull && len(s.text) < maxLogged {
		s.text = append(append(s.text, d.Text...), d.Arguments...)
	}
}

// write appends an event to out.
func (s *stream) write(d *ai.Delta) {
	raw, err := api.EncodeJSON(d)
	if err != nil { // our own type always encodes
		return
	}
	s.out.WriteString("data: ")
	s.out.Write(raw)
	s.out.WriteString("\n\n")
}

// end records the usage of a whole answer, and writes the last event.
func (s *stream) end() {
	state := s.reader.state()
	spent, err := s.finish(nil)
	if err != nil {
		s.fail(err)
		return
	}
	model := state.model
	if model == "" {
		model = s.attempt.Model
	}
	s.ended = true
	s.write(&ai.Delta{Type: ai.DeltaEnd, FinishReason: state.finish, Provider: s.attempt.Provider.Name, Model: model, Usage: spent})
}

// fail writes an error as the last event.
func (s *stream) fail(err error) {
	err = shown(err, 0)
	d := &ai.Delta{Type: ai.DeltaError, Code: string(api.ErrorCode(err)), Message: textOf(err)}
	var hosted *sandbox.HostError
	if errors.As(err, &hosted) {
		d.Message = hosted.Refusal.Message
	}
	s.ended = true
	s.write(d)
}

// used returns what the answer has used so far: what the provider has reported, or else an estimate.
func (s *stream) used() ai.Spent {
	state := s.reader.state()
	spent := state.spent
	if !state.known {
		spent.Estimated = true
		spent.OutputTokens = max(spent.OutputTokens, tokensOf(s.size))
		if spent.InputTokens+spent.CacheReadTokens+spent.CacheCreationTokens == 0 {
			spent.InputTokens = s.of.input
		}
	}
	return spent
}

// finish records what the answer has used, once.
func (s *stream) finish(failed error) (spent *ai.Spent, err error) {
	s.finishing.Do(func() {
		one := s.used()
		spent = &one
		err = s.c.account(s.ctx, s.who, s.attempt, spent, s.phase)
		if failed == nil {
			failed = err
		}
		s.c.log(s.who, s.attempt, "stream", spent, failed, s.prompt, s.text)
	})
	return spent, err
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for s.out.Len() == 0 {
		if s.ended {
			return 0, io.EOF
		}
		err := s.step()
		if err == nil {
			continue
		}
		var f *failure
		if errors.As(err, &f) {
			f.provider = s.attempt.Provider.Name
			if f.moves() {
				s.c.failed(s.ctx, s.who, s.attempt, f)
			}
		}
		_, _ = s.finish(err) // the first error counts
		s.fail(err)
	}
	return s.out.Read(p)
}

// Close ends the request.
func (s *stream) Close() error {
	_, _ = s.finish(errClosed) // account has logged the error
	s.cancel()
	return s.exchange.body.Close()
}

// errClosed is how the log calls a stream that the function did not read to its end.
var errClosed = errors.New("the function closed the stream")
