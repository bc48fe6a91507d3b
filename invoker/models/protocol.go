package models

import (
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/api/jsonsize"
)

// protocol is the form of the requests and answers of a kind of providers.
type protocol interface {
	// authorize sets the headers of a request; key is nil for none.
	authorize(header http.Header, key []byte)
	// chat returns the path of a chat below the base URL, and the request.
	chat(p *ai.Provider, c *ai.Chat, stream bool) (path string, body map[string]any, err error)
	// answer reads the answer to a chat.
	answer(raw []byte) (*ai.Answer, error)
	// reader reads the events of a streamed answer.
	reader() eventReader
	// embed is as chat, for an embed.
	embed(p *ai.Provider, e *ai.Embed) (path string, body map[string]any, err error)
	// embeddings reads the answer to an embed of count texts.
	embeddings(raw []byte, count int) (*ai.Embeddings, error)
}

// protocolOf returns the protocol of a provider, which is no route.
func protocolOf(p *ai.Provider) protocol {
	if p.Kind == ai.KindAnthropic {
		return anthropic{}
	}
	return openAI{}
}

// eventReader reads a streamed answer, whose state it holds.
type eventReader interface {
	// event reads an event. end reports that the answer is whole. Errors: a *failure that the
	// provider has reported, CodeHostAIFailed for what cannot be read.
	event(e event) (deltas []ai.Delta, end bool, err error)
	// state returns the state of the answer so far.
	state() *progress
}

// progress is the state of a streamed answer.
type progress struct {
	model, finish string
	spent         ai.Spent
	known         bool // the provider has reported the usage
}

// tokens returns a number of tokens that a provider has reported, within the bounds of usage: sums of
// several must not overflow.
func tokens(n int64) int64 { return min(max(n, 0), agent.MaxTokens) }

// invalid is the refusal of a request.
func invalid(format string, args ...any) error {
	return api.Errorf(api.CodeHostInvalidArgument, format, args...)
}

// malformed is the error of an answer that cannot be read.
func malformed(what string) error {
	return api.Errorf(api.CodeHostAIFailed, "the provider's answer cannot be read: %s", what)
}

// decode decodes an answer, or an event of a stream. Errors: CodeHostAIFailed.
func decode[T any](raw []byte, into *T) error {
	if !jsonsize.Fits(raw, reflect.TypeFor[T](), jsonsize.Elements) {
		return malformed("it has more elements than an answer may have")
	}
	if json.Unmarshal(raw, into) != nil {
		return malformed("it is not JSON of the expected form")
	}
	return nil
}

// set sets a field of a request unless its value is the zero value.
func set[T comparable](body map[string]any, name string, value T) {
	var zero T
	if value != zero {
		body[name] = value
	}
}

// setPointer sets a field of a request unless it is nil.
func setPointer(body map[string]any, name string, value *float64) {
	if value != nil {
		body[name] = *value
	}
}

// setList sets a field of a request unless it is empty.
func setList[T any](body map[string]any, name string, value []T) {
	if len(value) > 0 {
		body[name] = value
	}
}

// setExtra adds the further fields of a request.
func setExtra(body map[string]any, extra map[string]json.RawMessage) {
	for name, value := range extra {
		body[name] = value
	}
}

// schemaOf returns the schema of a tool's arguments, that of any object by default.
func schemaOf(t *ai.Tool) json.RawMessage {
	if len(t.Parameters) == 0 || string(t.Parameters) == "null" {
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.Parameters
}
