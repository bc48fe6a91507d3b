package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

// The bounds of the bridge.
const (
	maxLine    = 4 << 20 // of a message of the client, as the server has it
	maxEvent   = 16 << 20
	maxPending = 64              // requests at the same time
	endWithin  = 5 * time.Second // for requests that are pending when the client closes stdin
)

// sessionless is the first version of the protocol without sessions, whose requests are cancelled by their
// end.
const sessionless = "2026-07-28"

const cancelled = "notifications/cancelled"

// errInterrupted ends a call that its client cancelled.
var errInterrupted = errors.New("the request was cancelled")

// post sends a message, and returns the open response.
type post func(ctx context.Context, header http.Header, message []byte) (*http.Response, error)

// bridge passes messages between a client and a server.
type bridge struct {
	post   post
	report func(error)

	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	session string // that the server has named
	version string // that was negotiated
	pending map[string]context.CancelCauseFunc

	slots   chan struct{}
	waiting sync.WaitGroup
}

func newBridge(post post, out io.Writer, report func(error)) *bridge {
	return &bridge{post: post, report: report, out: out, pending: map[string]context.CancelCauseFunc{}, slots: make(chan struct{}, maxPending)}
}

// message has the members of a message of the client that the bridge reads.
type message struct {
	text   []byte
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// run passes messages on until the client closes in, or ctx ends.
func (b *bridge) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() { // a read of stdin cannot be interrupted
		failed <- readLines(ctx, in, lines, b.report)
		close(lines)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, open := <-lines:
			if open {
				b.take(ctx, line)
				continue
			}
			b.drain(cancel)
			return <-failed
		}
	}
}

// drain waits for the requests that are pending.
func (b *bridge) drain(cancel context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		b.waiting.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(endWithin):
		cancel()
		<-done
	}
}

// readLines sends the lines of in. One that is too long is reported and left out.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte, report func(error)) error {
	r := bufio.NewReader(in)
	for {
		line, err := readLine(r)
		if len(line) > maxLine {
			report(fmt.Errorf("a message of the client exceeds %s; it was dropped", api.SizeText(maxLine)))
			line = nil
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			select {
			case lines <- line:
			case <-ctx.Done():
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read stdin: %w", err)
		}
	}
}

// readLine reads a line. Of one that is too long it keeps a byte more than is allowed.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if room := maxLine + 1 - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take passes a message on. Requests are answered at the same time, except for the first: it names the
// session of the others. Notifications keep their order.
func (b *bridge) take(ctx context.Context, line []byte) {
	m := message{text: line}
	if err := json.Unmarshal(line, &m); err != nil {
		b.report(fmt.Errorf("the client sent a line that is no message: %w", err))
		return
	}
	if m.Method == cancelled && b.end(m.Params.RequestID) {
		return
	}
	if len(m.ID) == 0 || m.Method == "initialize" {
		b.pass(ctx, &m)
		return
	}
	b.slots <- struct{}{}
	ctx, cancel := context.WithCancelCause(ctx)
	b.mu.Lock()
	b.pending[string(m.ID)] = cancel
	b.mu.Unlock()
	b.waiting.Go(func() {
		defer func() {
			b.mu.Lock()
			delete(b.pending, string(m.ID))
			b.mu.Unlock()
			cancel(nil)
			<-b.slots
		}()
		b.pass(ctx, &m)
	})
}

// end ends a request of a client without a session. It reports whether the server need not be notified.
func (b *bridge) end(id json.RawMessage) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != "" {
		return false
	}
	if cancel := b.pending[string(id)]; cancel != nil {
		cancel(errInterrupted)
	}
	return true
}

// pass sends a message and writes the answer. Errors are answered to the client, and reported.
func (b *bridge) pass(ctx context.Context, m *message) {
	err := b.exchange(ctx, m)
	if err == nil || ctx.Err() != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		return
	}
	b.report(err)
	if len(m.ID) == 0 {
		return
	}
	raw, failed := api.EncodeJSON(map[string]any{
		"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32000, "message": err.Error()},
	})
	if failed == nil {
		failed = b.write(raw)
	}
	if failed != nil {
		b.report(failed)
	}
}

// headers returns the headers of a message.
func (b *bridge) headers(m *message) http.Header {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := http.Header{}
	version := b.version
	if m.Params.Meta.Version != "" {
		version = m.Params.Meta.Version
	}
	if version != "" && m.Method != "initialize" {
		h.Set("Mcp-Protocol-Version", version)
	}
	if b.session != "" {
		h.Set("Mcp-Session-Id", b.session)
	}
	if version >= sessionless {
		h.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" {
			h.Set("Mcp-Name", name)
		}
	}
	return h
}

// exchange sends a message and writes the messages that answer it.
func (b *bridge) exchange(ctx context.Context, m *message) error {
	response, err := b.post(ctx, b.headers(m), m.text)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // the rest is not read
	if m.Method == "initialize" {
		b.mu.Lock()
		b.session = response.Header.Get("Mcp-Session-Id")
		b.mu.Unlock()
	}
	contentType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode == http.StatusAccepted:
		return nil
	case contentType == "text/event-stream":
		return b.events(response.Body)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxEvent))
	if err != nil {
		return fmt.Errorf("the answer of the server was cut short: %w", err)
	}
	if response.StatusCode >= http.StatusMultipleChoices && !isAnswer(body) {
		return problemOf(response.StatusCode, body)
	}
	if m.Method == "initialize" {
		b.negotiated(body)
	}
	return b.write(body)
}

// isAnswer reports whether a body is a message of JSON-RPC.
func isAnswer(body []byte) bool {
	var v struct {
		Version string `json:"jsonrpc"`
	}
	return json.Unmarshal(body, &v) == nil && v.Version != ""
}

// problemOf returns the error of an answer that is a problem.
func problemOf(status int, body []byte) error {
	var p struct {
		Code   api.Code `json:"code"`
		Detail string   `json:"detail"`
	}
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return fmt.Errorf("the server answered %d %.200s", status, bytes.TrimSpace(body))
	}
	return api.Errorf(p.Code, "%s", p.Detail)
}

// negotiated keeps the version that the answer to initialize names.
func (b *bridge) negotiated(body []byte) {
	var answer struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version = answer.Result.Version
}

// events writes the messages of server-sent events.
func (b *bridge) events(body io.Reader) error {
	scanner := bufio.NewScanner(body)
	scanner.Buffer(nil, maxEvent)
	for scanner.Scan() {
		data, ok := strings.CutPrefix(scanner.Text(), "data:")
		data = strings.TrimSpace(data)
		if !ok || data == "" {
			continue
		}
		if err := b.write([]byte(data)); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("the answer of the server was cut short: %w", err)
	}
	return nil
}

// write writes a message as a line.
func (b *bridge) write(text []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return fmt.Errorf("the server sent no JSON: %w", err)
	}
	line.WriteByte('\n')
	b.writing.Lock()
	defer b.writing.Unlock()
	_, err := b.out.Write(line.Bytes())
	return err
}
