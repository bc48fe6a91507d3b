package ai

import (
	"encoding/json"

	"github.com/codesous/sous/api/agent"
)

// Bounds of calls, in bytes unless stated.
const (
	MaxRequestBytes  = 4 << 20
	MaxAnswerBytes   = 4 << 20
	MaxMessages      = 2000 // number
	MaxTools         = 128  // number
	MaxStops         = 16   // number
	MaxInputs        = 2048 // number, of embed
	MaxConcurrent    = 8    // number of calls and streams of one activation at a time
	DefaultMaxTokens = 4096 // number, for anthropic, which requires one
)

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Chat is the request of cs.ai.chat and cs.ai.stream.
type Chat struct {
	Provider    string          `json:"provider"`
	Model       string          `json:"model"`
	Messages    []Message       `json:"messages"`
	Tools       []Tool          `json:"tools"`
	ToolChoice  json.RawMessage `json:"tool_choice"` // auto, none, required, or {"name": …}
	MaxTokens   int64           `json:"max_tokens"`
	Temperature *float64        `json:"temperature"`
	TopP        *float64        `json:"top_p"`
	Stop        []string        `json:"stop"`
	// ResponseFormat is passed on as it is, to providers of KindOpenAI alone.
	ResponseFormat json.RawMessage `json:"response_format"`
	// Extra are further fields of the provider's request, passed on as they are.
	Extra map[string]json.RawMessage `json:"extra"`
	// Phase is that of the usage.
	Phase string `json:"phase"`
}

// Message is a message. Content is a text, or a list of parts {type: "text", text} and {type:
// "image_url", image_url: {url}}.
type Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content,omitempty"`
	ToolCalls  []ToolCall      `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"` // of a result, RoleTool
}

// Part is a part of a message.
type Part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// Tool is a tool that a model may call. Parameters is the JSON Schema of its arguments.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// ToolCall is a call of a tool. Arguments is a text, as the model wrote it.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Why a model ended its answer.
const (
	FinishStop      = "stop"
	FinishLength    = "length"
	FinishToolCalls = "tool_calls"
	FinishFilter    = "content_filter"
)

// Answer is the answer of a model. Message is the answer as a message, for the next request.
type Answer struct {
	Text         string     `json:"text"`
	ToolCalls    []ToolCall `json:"tool_calls"`
	Message      Message    `json:"message"`
	FinishReason string     `json:"finish_reason"`
	Provider     string     `json:"provider"`
	Model        string     `json:"model"`
	Usage        Spent      `json:"usage"`
}

// Spent is the usage of a call. Estimated reports that the provider did not say.
type Spent struct {
	InputTokens         int64      `json:"input_tokens"`
	OutputTokens        int64      `json:"output_tokens"`
	CacheCreationTokens int64      `json:"cache_creation_tokens"`
	CacheReadTokens     int64      `json:"cache_read_tokens"`
	CostUSD             *agent.USD `json:"cost_usd,omitempty"`
	Estimated           bool       `json:"estimated,omitempty"`
}

// Usage returns s as an entry of usage.
func (s *Spent) Usage(provider, model, phase string) agent.Usage {
	most := func(n int64) int64 { return min(max(n, 0), agent.MaxTokens) }
	return agent.Usage{
		Provider: provider, Model: model, Phase: phase, InputTokens: most(s.InputTokens), OutputTokens: most(s.OutputTokens),
		CacheCreationTokens: most(s.CacheCreationTokens), CacheReadTokens: most(s.CacheReadTokens), CostUSD: s.CostUSD,
	}
}

// The types of Delta.
const (
	DeltaText     = "text"
	DeltaToolCall = "tool_call"
	DeltaEnd      = "end"
	DeltaError    = "error"
)

// Delta is a part of a streamed answer. A text has Text. A tool call has Index, from 0 on, in its first part ID and
// Name, and a part of Arguments. The end, which is the last one, has FinishReason, Provider, Model and
// Usage; an error, which takes its place, Code and Message.
type Delta struct {
	Type         string `json:"type"`
	Text         string `json:"text,omitempty"`
	Index        *int   `json:"index,omitempty"` // nil but for a tool call
	ID           string `json:"id,omitempty"`
	Name         string `json:"name,omitempty"`
	Arguments    string `json:"arguments,omitempty"`
	FinishReason string `json:"finish_reason,omitempty"`
	Provider     string `json:"provider,omitempty"`
	Model        string `json:"model,omitempty"`
	Usage        *Spent `json:"usage,omitempty"`
	Code         string `json:"code,omitempty"`
	Message      string `json:"message,omitempty"`
}

// Embed is the request of cs.ai.embed.
type Embed struct {
	Provider   string                     `json:"provider"`
	Model      string                     `json:"model"`
	Input      []string                   `json:"input"`
	Dimensions int64                      `json:"dimensions"`
	Extra      map[string]json.RawMessage `json:"extra"`
	Phase      string                     `json:"phase"`
}

// Embeddings are the vectors of texts, in their order.
type Embeddings struct {
	Embeddings [][]float64 `json:"embeddings"`
	Provider   string      `json:"provider"`
	Model      string      `json:"model"`
	Usage      Spent       `json:"usage"`
}
