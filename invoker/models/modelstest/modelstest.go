// Package modelstest has a fake provider of models for tests. It speaks the protocols of OpenAI and of
// Anthropic, and fails as the real ones do: with 429 and its headers, 529, error events and cut streams.
package modelstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Key is the key that a Fake requires.
const Key = "sk-fake-0123456789"

// Request is a request that arrived.
type Request struct {
	Path   string
	Header http.Header
	Body   map[string]any
}

// Stream reports whether the answer is to be a stream.
func (r *Request) Stream() bool { return r.Body["stream"] == true }

// anthropic reports whether the request is one of Anthropic's protocol.
func (r *Request) anthropic() bool { return strings.HasSuffix(r.Path, "/messages") }

// Answer answers a request.
type Answer func(w http.ResponseWriter, r *Request)

// Fake is a fake provider. Its answers are used in their order, and the last one again and again.
type Fake struct {
	*httptest.Server

	mu       sync.Mutex
	answers  []Answer
	requests []Request
}

// New starts a fake provider, which ends with the test.
func New(t testing.TB, answers ...Answer) *Fake {
	t.Helper()
	f := &Fake{answers: answers}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// Then replaces the answers to come.
func (f *Fake) Then(answers ...Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = answers
}

// Requests returns the requests that arrived.
func (f *Fake) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Request(nil), f.requests...)
}

// Last returns the last request.
func (f *Fake) Last(t testing.TB) Request {
	t.Helper()
	all := f.Requests()
	if len(all) == 0 {
		t.Fatal("got no request, want one")
	}
	return all[len(all)-1]
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	in := &Request{Path: r.URL.Path, Header: r.Header.Clone()}
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(raw, &in.Body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.requests = append(f.requests, *in)
	answer := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	f.mu.Unlock()
	w.Header().Set("X-Request-Id", "req_fake")
	answer(w, in)
}

// NeedsKey answers 401, which repeats the wrong key, unless the request has Key.
func NeedsKey(next Answer) Answer {
	return func(w http.ResponseWriter, r *Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if r.anthropic() {
			got = r.Header.Get("X-Api-Key")
		}
		if got != Key {
			Refused(http.StatusUnauthorized, "authentication_error", "Incorrect API key provided: "+got)(w, r)
			return
		}
		next(w, r)
	}
}

// Text answers with a text of several parts, and its usage.
func Text(input, output int, parts ...string) Answer {
	return func(w http.ResponseWriter, r *Request) {
		switch {
		case r.anthropic() && r.Stream():
			anthropicStream(w, r, input, output, parts)
		case r.anthropic():
			writeJSON(w, http.StatusOK, map[string]any{
				"id": "msg_1", "type": "message", "role": "assistant", "model": r.Body["model"], "stop_reason": "end_turn",
				"content": []any{map[string]any{"type": "text", "text": strings.Join(parts, "")}},
				"usage":   map[string]any{"input_tokens": input, "output_tokens": output, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
			})
		case r.Stream():
			openAIStream(w, r, input, output, parts)
		default:
			writeJSON(w, http.StatusOK, map[string]any{
				"id": "chatcmpl-1", "object": "chat.completion", "model": r.Body["model"],
				"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": strings.Join(parts, "")}}},
				"usage":   openAIUsage(input, output),
			})
		}
	}
}

func openAIUsage(input, output int) map[string]any {
	return map[string]any{"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output, "prompt_tokens_details": map[string]any{"cached_tokens": 0}}
}

// Tool answers with a call of a tool.
func Tool(id, name, arguments string) Answer {
	return func(w http.ResponseWriter, r *Request) {
		half := len(arguments) / 2
		switch {
		case r.anthropic() && r.Stream():
			e := newEvents(w)
			e.named("message_start", map[string]any{"type": "message_start", "message": map[string]any{"model": r.Body["model"], "usage": map[string]any{"input_tokens": 7, "output_tokens": 1}}})
			e.named("content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
			e.named("content_block_stop", map[string]any{"type": "content_block_stop", "index": 0})
			e.named("content_block_start", map[string]any{"type": "content_block_start", "index": 1, "content_block": map[string]any{"type": "tool_use", "id": id, "name": name, "input": map[string]any{}}})
			for _, part := range []string{"", arguments[:half], arguments[half:]} {
				e.named("content_block_delta", map[string]any{"type": "content_block_delta", "index": 1, "delta": map[string]any{"type": "input_json_delta", "partial_json": part}})
			}
			e.named("content_block_stop", map[string]any{"type": "content_block_stop", "index": 1})
			e.named("message_delta", map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": "tool_use"}, "usage": map[string]any{"output_tokens": 5}})
			e.named("message_stop", map[string]any{"type": "message_stop"})
		case r.anthropic():
			writeJSON(w, http.StatusOK, map[string]any{
				"model": r.Body["model"], "stop_reason": "tool_use", "usage": map[string]any{"input_tokens": 7, "output_tokens": 5},
				"content": []any{map[string]any{"type": "tool_use", "id": id, "name": name, "input": json.RawMessage(arguments)}},
			})
		case r.Stream():
			e := newEvents(w)
			call := func(rest map[string]any) {
				rest["index"] = 0
				e.data(map[string]any{"model": r.Body["model"], "choices": []any{map[string]any{"index": 0, "delta": map[string]any{"tool_calls": []any{rest}}, "finish_reason": nil}}})
			}
			call(map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": ""}})
			call(map[string]any{"function": map[string]any{"arguments": arguments[:half]}})
			call(map[string]any{"function": map[string]any{"arguments": arguments[half:]}})
			e.data(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "tool_calls"}}})
			e.data(map[string]any{"choices": []any{}, "usage": openAIUsage(7, 5)})
			e.text("[DONE]")
		default:
			call := map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": arguments}}
			writeJSON(w, http.StatusOK, map[string]any{
				"model": r.Body["model"], "usage": openAIUsage(7, 5),
				"choices": []any{map[string]any{"finish_reason": "tool_calls", "message": map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}}},
			})
		}
	}
}

// Vectors answers an embed.
func Vectors(input int) Answer {
	return func(w http.ResponseWriter, r *Request) {
		texts, _ := r.Body["input"].([]any)
		data := make([]any, 0, len(texts))
		for i := len(texts) - 1; i >= 0; i-- { // in another order
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": []float64{float64(i), 0.5}})
		}
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "model": r.Body["model"], "data": data, "usage": map[string]any{"prompt_tokens": input, "total_tokens": input}})
	}
}

// RateLimited answers 429 with the headers of the real ones. A negative number of seconds is left out.
func RateLimited(seconds float64) Answer {
	return func(w http.ResponseWriter, r *Request) {
		if seconds >= 0 {
			w.Header().Set("Retry-After", fmt.Sprint(seconds))
		}
		w.Header().Set("X-Ratelimit-Limit-Requests", "500")
		w.Header().Set("X-Ratelimit-Remaining-Requests", "0")
		Refused(http.StatusTooManyRequests, "rate_limit_error", "Rate limit reached for requests")(w, r)
	}
}

// Overloaded answers as Anthropic does under load.
func Overloaded() Answer { return Refused(529, "overloaded_error", "Overloaded") }

// Refused answers with an error.
func Refused(status int, kind, message string) Answer {
	return func(w http.ResponseWriter, r *Request) {
		body := map[string]any{"error": map[string]any{"type": kind, "message": message}}
		if r.anthropic() {
			body["type"] = "error"
		}
		writeJSON(w, status, body)
	}
}

// Cut begins a stream, and breaks the connection.
func Cut(parts ...string) Answer {
	return func(w http.ResponseWriter, r *Request) {
		e := newEvents(w)
		for _, part := range parts {
			e.part(r, part)
		}
		panic(http.ErrAbortHandler)
	}
}

// Fails begins a stream, and ends it with an error event.
func Fails(kind, message string, parts ...string) Answer {
	return func(w http.ResponseWriter, r *Request) {
		e := newEvents(w)
		for _, part := range parts {
			e.part(r, part)
		}
		body := map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
		if r.anthropic() {
			e.named("error", body)
			return
		}
		e.data(body)
	}
}

// Silent begins a stream, sends a part, and then nothing until the client goes; gone is closed then.
func Silent(t testing.TB, gone chan struct{}, parts ...string) Answer {
	t.Helper()
	closed := make(chan struct{})
	t.Cleanup(func() { close(closed) })
	return func(w http.ResponseWriter, r *Request) {
		e := newEvents(w)
		for _, part := range parts {
			e.part(r, part)
		}
		for e.alive() {
			select {
			case <-closed:
				return
			default:
			}
		}
		close(gone)
	}
}

// events writes server-sent events.
type events struct{ w http.ResponseWriter }

func newEvents(w http.ResponseWriter) events {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	return events{w}
}

func (e events) write(text string) error {
	_, err := io.WriteString(e.w, text)
	if err == nil {
		err = http.NewResponseController(e.w).Flush()
	}
	return err
}

// alive sends comments until the client has gone.
func (e events) alive() bool { return e.write(": ping\n\n") == nil }

func (e events) text(data string) { _ = e.write("data: " + data + "\n\n") }

func (e events) data(v any) {
	raw, _ := json.Marshal(v) // values of this file encode
	e.text(string(raw))
}

func (e events) named(name string, v any) {
	raw, _ := json.Marshal(v) // values of this file encode
	_ = e.write("event: " + name + "\ndata: " + string(raw) + "\n\n")
}

// part writes a part of a text in the protocol of a request.
func (e events) part(r *Request, text string) {
	if r.anthropic() {
		e.named("content_block_delta", map[string]any{"type": "content_block_delta", "index": 0, "delta": map[string]any{"type": "text_delta", "text": text}})
		return
	}
	e.data(map[string]any{"model": r.Body["model"], "choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": text}, "finish_reason": nil}}})
}

func openAIStream(w http.ResponseWriter, r *Request, input, output int, parts []string) {
	e := newEvents(w)
	e.data(map[string]any{"model": r.Body["model"], "choices": []any{map[string]any{"index": 0, "delta": map[string]any{"role": "assistant", "content": ""}, "finish_reason": nil}}, "usage": nil})
	for _, part := range parts {
		e.part(r, part)
	}
	e.data(map[string]any{"model": r.Body["model"], "choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}})
	options, _ := r.Body["stream_options"].(map[string]any)
	if options["include_usage"] == true {
		e.data(map[string]any{"model": r.Body["model"], "choices": []any{}, "usage": openAIUsage(input, output)})
	}
	e.text("[DONE]")
}

func anthropicStream(w http.ResponseWriter, r *Request, input, output int, parts []string) {
	e := newEvents(w)
	e.named("message_start", map[string]any{"type": "message_start", "message": map[string]any{
		"id": "msg_1", "role": "assistant", "model": r.Body["model"], "content": []any{}, "usage": map[string]any{"input_tokens": input, "output_tokens": 1},
	}})
	e.named("content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	e.named("ping", map[string]any{"type": "ping"})
	for _, part := range parts {
		e.part(r, part)
	}
	e.named("content_block_stop", map[string]any{"type": "content_block_stop", "index": 0})
	e.named("message_delta", map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": "end_turn"}, "usage": map[string]any{"output_tokens": output}})
	e.named("message_stop", map[string]any{"type": "message_stop"})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}
