package models

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/codesous/sous/api/ai"
)

// anthropic is the protocol of Anthropic's Messages API.
type anthropic struct{}

const anthropicVersion = "2023-06-01"

func (anthropic) authorize(header http.Header, key []byte) {
	if key != nil {
		header.Set("X-Api-Key", string(key))
	}
	if header.Get("Anthropic-Version") == "" {
		header.Set("Anthropic-Version", anthropicVersion)
	}
}

// block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Source    *imageSource    `json:"source,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []block         `json:"content,omitempty"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

type anthropicMessage struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type anthropicUsage struct {
	InputTokens         *int64 `json:"input_tokens"`
	OutputTokens        *int64 `json:"output_tokens"`
	CacheCreationTokens *int64 `json:"cache_creation_input_tokens"`
	CacheReadTokens     *int64 `json:"cache_read_input_tokens"`
}

// add sets the numbers of s that u has: later events of a stream have totals.
func (u *anthropicUsage) add(s *ai.Spent) {
	for _, n := range []struct {
		from *int64
		to   *int64
	}{{u.InputTokens, &s.InputTokens}, {u.OutputTokens, &s.OutputTokens}, {u.CacheCreationTokens, &s.CacheCreationTokens}, {u.CacheReadTokens, &s.CacheReadTokens}} {
		if n.from != nil {
			*n.to = tokens(*n.from)
		}
	}
}

func (anthropic) chat(_ *ai.Provider, c *ai.Chat, stream bool) (string, map[string]any, error) {
	if len(c.ResponseFormat) > 0 && string(c.ResponseFormat) != "null" {
		return "", nil, invalid("response_format is not supported by providers of the kind anthropic: use a tool, or extra")
	}
	system, messages, err := anthropicMessages(c.Messages)
	if err != nil {
		return "", nil, err
	}
	body := map[string]any{"model": c.Model, "messages": messages, "max_tokens": cmp.Or(c.MaxTokens, ai.DefaultMaxTokens)}
	setExtra(body, c.Extra)
	setList(body, "system", system)
	var tools []any
	for i := range c.Tools {
		tool := map[string]any{"name": c.Tools[i].Name, "input_schema": schemaOf(&c.Tools[i])}
		set(tool, "description", c.Tools[i].Description)
		tools = append(tools, tool)
	}
	setList(body, "tools", tools)
	mode, tool, _ := c.Choice()
	switch {
	case tool != "":
		body["tool_choice"] = map[string]any{"type": "tool", "name": tool}
	case mode == "required":
		body["tool_choice"] = map[string]any{"type": "any"}
	case mode != "":
		body["tool_choice"] = map[string]any{"type": mode}
	}
	setPointer(body, "temperature", c.Temperature)
	setPointer(body, "top_p", c.TopP)
	setList(body, "stop_sequences", c.Stop)
	if stream {
		body["stream"] = true
	}
	return "/v1/messages", body, nil
}

// anthropicMessages returns messages in the form of the protocol: system messages are apart, results of
// tools are messages of the user, and messages of one role in a row are one.
func anthropicMessages(in []ai.Message) (system []block, out []anthropicMessage, err error) {
	for i := range in {
		m := &in[i]
		blocks, err := blocksOf(m)
		if err != nil {
			return nil, nil, err
		}
		role := m.Role
		switch role {
		case ai.RoleSystem:
			system = append(system, blocks...)
			continue
		case ai.RoleTool:
			role, blocks = ai.RoleUser, []block{{Type: "tool_result", ToolUseID: m.ToolCallID, Content: blocks}}
		}
		if len(out) > 0 && out[len(out)-1].Role == role {
			last := &out[len(out)-1]
			last.Content = append(last.Content, blocks...)
			continue
		}
		out = append(out, anthropicMessage{Role: role, Content: blocks})
	}
	return system, out, nil
}

// blocksOf returns the content and the tool calls of a message. Errors: CodeHostInvalidArgument.
func blocksOf(m *ai.Message) ([]block, error) {
	parts, err := m.Parts()
	if err != nil {
		return nil, invalid("a message's content must be a text, or a list of parts")
	}
	blocks := []block{}
	for i := range parts {
		switch p := &parts[i]; p.Type {
		case "text":
			if p.Text != "" { // the API refuses empty ones
				blocks = append(blocks, block{Type: "text", Text: p.Text})
			}
		case "image_url":
			blocks = append(blocks, block{Type: "image", Source: sourceOf(p.ImageURL.URL)})
		default:
			return nil, invalid("a part of a message must have the type text or image_url")
		}
	}
	for _, call := range m.ToolCalls {
		input := json.RawMessage(cmp.Or(call.Arguments, "{}"))
		if !json.Valid(input) {
			return nil, invalid("the arguments of the tool call %s must be JSON", call.Name)
		}
		blocks = append(blocks, block{Type: "tool_use", ID: call.ID, Name: call.Name, Input: input})
	}
	return blocks, nil
}

// sourceOf returns the source of an image, whose data may be in its URL.
func sourceOf(url string) *imageSource {
	head, data, ok := strings.Cut(url, ";base64,")
	if mediaType, isData := strings.CutPrefix(head, "data:"); ok && isData {
		return &imageSource{Type: "base64", MediaType: mediaType, Data: data}
	}
	return &imageSource{Type: "url", URL: url}
}

// finishOf returns a stop reason as cs.ai names it.
func finishOf(reason string) string {
	switch reason {
	case "end_turn", "stop_sequence", "pause_turn":
		return ai.FinishStop
	case "max_tokens", "model_context_window_exceeded":
		return ai.FinishLength
	case "tool_use":
		return ai.FinishToolCalls
	case "refusal":
		return ai.FinishFilter
	}
	return reason
}

func (anthropic) answer(raw []byte) (*ai.Answer, error) {
	var in struct {
		Model      string          `json:"model"`
		Content    []block         `json:"content"`
		StopReason string          `json:"stop_reason"`
		Usage      *anthropicUsage `json:"usage"`
	}
	if err := decode(raw, &in); err != nil {
		return nil, err
	}
	if in.StopReason == "" {
		return nil, malformed("it has no stop_reason")
	}
	out := &ai.Answer{Model: in.Model, FinishReason: finishOf(in.StopReason)}
	for i := range in.Content {
		switch b := &in.Content[i]; b.Type {
		case "text":
			out.Text += b.Text
		case "tool_use":
			out.ToolCalls = append(out.ToolCalls, ai.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		}
	}
	if in.Usage == nil {
		out.Usage.Estimated = true
	} else {
		in.Usage.add(&out.Usage)
	}
	return out, nil
}

func (anthropic) embed(*ai.Provider, *ai.Embed) (string, map[string]any, error) {
	return "", nil, invalid("providers of the kind anthropic have no embeddings")
}

func (anthropic) embeddings([]byte, int) (*ai.Embeddings, error) {
	return nil, malformed("the provider has no embeddings")
}

func (anthropic) reader() eventReader { return &anthropicReader{tools: map[int]int{}} }

// anthropicReader reads the events of a message. tools has the number of the tool call of each block
// that is one.
type anthropicReader struct {
	progress
	tools map[int]int
}

func (r *anthropicReader) state() *progress { return &r.progress }

// anthropicEvent is an event of a streamed message.
type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string         `json:"model"`
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	ContentBlock block `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage anthropicUsage `json:"usage"`
}

func (r *anthropicReader) event(e event) (out []ai.Delta, end bool, err error) {
	var in anthropicEvent
	if err := decode(e.data, &in); err != nil {
		return nil, false, err
	}
	switch in.Type {
	case "error":
		return nil, false, reported(e.data)
	case "message_start":
		r.model = in.Message.Model
		in.Message.Usage.add(&r.spent)
	case "content_block_start":
		switch in.ContentBlock.Type {
		case "tool_use":
			at := len(r.tools)
			r.tools[in.Index] = at
			out = append(out, ai.Delta{Type: ai.DeltaToolCall, Index: &at, ID: in.ContentBlock.ID, Name: in.ContentBlock.Name})
		case "text":
			if in.ContentBlock.Text != "" {
				out = append(out, ai.Delta{Type: ai.DeltaText, Text: in.ContentBlock.Text})
			}
		}
	case "content_block_delta":
		switch in.Delta.Type {
		case "text_delta":
			out = append(out, ai.Delta{Type: ai.DeltaText, Text: in.Delta.Text})
		case "input_json_delta":
			at, ok := r.tools[in.Index]
			if ok && in.Delta.PartialJSON != "" {
				out = append(out, ai.Delta{Type: ai.DeltaToolCall, Index: &at, Arguments: in.Delta.PartialJSON})
			}
		}
	case "message_delta":
		r.finish = cmp.Or(finishOf(in.Delta.StopReason), r.finish)
		in.Usage.add(&r.spent)
		r.known = r.known || in.Usage.OutputTokens != nil
	case "message_stop":
		return nil, true, nil
	}
	return out, false, nil
}
