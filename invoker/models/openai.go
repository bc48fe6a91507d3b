package models

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/codesous/sous/api/ai"
)

// openAI is the protocol of OpenAI's chat completions and embeddings, which many servers speak.
type openAI struct{}

func (openAI) authorize(header http.Header, key []byte) {
	if key != nil {
		header.Set("Authorization", "Bearer "+string(key))
	}
}

type openAICall struct {
	Index    int    `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openAIMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []openAICall    `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
}

type openAIUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	Details          struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// spent returns the usage. Cached tokens are apart from the others.
func (u *openAIUsage) spent() ai.Spent {
	prompt := tokens(u.PromptTokens)
	cached := min(tokens(u.Details.CachedTokens), prompt)
	return ai.Spent{InputTokens: prompt - cached, OutputTokens: tokens(u.CompletionTokens), CacheReadTokens: cached}
}

func (openAI) chat(p *ai.Provider, c *ai.Chat, stream bool) (string, map[string]any, error) {
	messages := make([]openAIMessage, len(c.Messages))
	for i := range c.Messages {
		m := &c.Messages[i]
		out := openAIMessage{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
		if len(out.Content) == 0 {
			out.Content = json.RawMessage("null")
		}
		for _, call := range m.ToolCalls {
			one := openAICall{ID: call.ID, Type: "function"}
			one.Function.Name, one.Function.Arguments = call.Name, cmp.Or(call.Arguments, "{}")
			out.ToolCalls = append(out.ToolCalls, one)
		}
		messages[i] = out
	}
	body := map[string]any{"model": c.Model, "messages": messages}
	setExtra(body, c.Extra)
	var tools []any
	for i := range c.Tools {
		function := map[string]any{"name": c.Tools[i].Name, "parameters": schemaOf(&c.Tools[i])}
		set(function, "description", c.Tools[i].Description)
		tools = append(tools, map[string]any{"type": "function", "function": function})
	}
	setList(body, "tools", tools)
	mode, tool, _ := c.Choice()
	set(body, "tool_choice", mode)
	if tool != "" {
		body["tool_choice"] = map[string]any{"type": "function", "function": map[string]any{"name": tool}}
	}
	set(body, maxTokensField(p), c.MaxTokens)
	setPointer(body, "temperature", c.Temperature)
	setPointer(body, "top_p", c.TopP)
	setList(body, "stop", c.Stop)
	if len(c.ResponseFormat) > 0 {
		body["response_format"] = c.ResponseFormat
	}
	if stream {
		body["stream"], body["stream_options"] = true, map[string]any{"include_usage": true}
	}
	return "/chat/completions", body, nil
}

// maxTokensField returns the name of the limit of output tokens. OpenAI's own models refuse the name
// that the other servers know.
func maxTokensField(p *ai.Provider) string {
	u, err := url.Parse(p.BaseURL)
	if err == nil && u.Hostname() == "api.openai.com" {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

func (openAI) answer(raw []byte) (*ai.Answer, error) {
	var in struct {
		Model   string `json:"model"`
		Choices []struct {
			FinishReason string        `json:"finish_reason"`
			Message      openAIMessage `json:"message"`
		} `json:"choices"`
		Usage *openAIUsage `json:"usage"`
	}
	if err := decode(raw, &in); err != nil {
		return nil, err
	}
	if len(in.Choices) == 0 {
		return nil, malformed("it has no choices")
	}
	m := &in.Choices[0].Message
	out := &ai.Answer{Model: in.Model, FinishReason: in.Choices[0].FinishReason}
	parts, err := (&ai.Message{Content: m.Content}).Parts()
	if err != nil {
		return nil, malformed("the content is neither a text nor a list of parts")
	}
	for _, part := range parts {
		out.Text += part.Text
	}
	for _, call := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, ai.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	if in.Usage == nil {
		out.Usage.Estimated = true
	} else {
		out.Usage = in.Usage.spent()
	}
	return out, nil
}

func (openAI) embed(_ *ai.Provider, e *ai.Embed) (string, map[string]any, error) {
	body := map[string]any{"model": e.Model, "input": e.Input, "encoding_format": "float"}
	setExtra(body, e.Extra)
	set(body, "dimensions", e.Dimensions)
	return "/embeddings", body, nil
}

func (openAI) embeddings(raw []byte, count int) (*ai.Embeddings, error) {
	var in struct {
		Model string `json:"model"`
		Data  []struct {
			Index     int       `json:"index"`
			Embedding []float64 `json:"embedding"`
		} `json:"data"`
		Usage *openAIUsage `json:"usage"`
	}
	if err := decode(raw, &in); err != nil {
		return nil, err
	}
	out := &ai.Embeddings{Model: in.Model, Embeddings: make([][]float64, count)}
	for i := range in.Data {
		if at := in.Data[i].Index; at >= 0 && at < count {
			out.Embeddings[at] = in.Data[i].Embedding
		}
	}
	for _, vector := range out.Embeddings {
		if vector == nil {
			return nil, malformed("it lacks the vector of a text")
		}
	}
	if in.Usage == nil {
		out.Usage.Estimated = true
	} else {
		out.Usage = in.Usage.spent()
	}
	return out, nil
}

func (openAI) reader() eventReader { return &openAIReader{calls: map[int]int{}} }

// openAIReader reads the chunks of a chat completion. Some servers leave out the usage, and some the
// [DONE] at the end. calls has the number of the tool call of each index: the function keeps calls in a
// list, and an index of the provider may be any number.
type openAIReader struct {
	progress
	calls map[int]int
}

// numberOf returns the number of a tool call.
func (r *openAIReader) numberOf(index int) int {
	at, ok := r.calls[index]
	if !ok {
		at = len(r.calls)
		r.calls[index] = at
	}
	return at
}

func (r *openAIReader) state() *progress { return &r.progress }

func (r *openAIReader) event(e event) (out []ai.Delta, end bool, err error) {
	if string(e.data) == "[DONE]" {
		return nil, true, nil
	}
	var in struct {
		Model   string `json:"model"`
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Delta        struct {
				Content   string       `json:"content"`
				ToolCalls []openAICall `json:"tool_calls"`
			} `json:"delta"`
		} `json:"choices"`
		Usage *openAIUsage    `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := decode(e.data, &in); err != nil {
		return nil, false, err
	}
	if len(in.Error) > 0 && string(in.Error) != "null" {
		return nil, false, reported(e.data)
	}
	r.model = cmp.Or(in.Model, r.model)
	if in.Usage != nil {
		r.spent, r.known = in.Usage.spent(), true
	}
	for i := range in.Choices {
		c := &in.Choices[i]
		r.finish = cmp.Or(c.FinishReason, r.finish)
		if c.Delta.Content != "" {
			out = append(out, ai.Delta{Type: ai.DeltaText, Text: c.Delta.Content})
		}
		for _, call := range c.Delta.ToolCalls {
			at := r.numberOf(call.Index)
			out = append(out, ai.Delta{Type: ai.DeltaToolCall, Index: &at, ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
	}
	return out, false, nil
}
