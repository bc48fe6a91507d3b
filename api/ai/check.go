package ai

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/codesous/sous/api/jsonsize"
)

// errElements refuses a content whose parts would take much more memory than its text.
var errElements = errors.New("ai: more parts than a message may have")

// Fits reports whether a request may be decoded into a T: whether it has at most MaxRequestBytes, and
// its elements take little memory.
func Fits[T any](raw []byte) bool {
	return len(raw) <= MaxRequestBytes && jsonsize.Fits(raw, reflect.TypeFor[T](), jsonsize.Elements)
}

// reserved are the fields of providers' requests that extra must not have: the platform sets them, and
// limits and usage depend on them.
var reserved = []string{
	"model", "messages", "input", "system", "tools", "tool_choice", "max_tokens", "max_completion_tokens", "max_output_tokens",
	"n", "best_of", "stream", "stream_options", "response_format", "stop", "stop_sequences", "temperature", "top_p", "dimensions",
	// Those of other servers with the same protocol.
	"models", "route", "plugins", "n_predict", "max_new_tokens", "min_tokens", "fallbacks", "service_tier",
}

// extraName is the form of the names of extra. Some servers take names of other forms for reserved ones.
var extraName = regexp.MustCompile(`^[a-z0-9_]+$`)

// Check returns the first fault of a chat, "" for none.
func (c *Chat) Check() string {
	switch {
	case !ValidModel(c.Model):
		return "model " + modelRule
	case !ValidModel(c.Phase):
		return "phase " + modelRule
	case len(c.Messages) == 0 || len(c.Messages) > MaxMessages:
		return fmt.Sprintf("messages must be from 1 to %d", MaxMessages)
	case len(c.Tools) > MaxTools:
		return fmt.Sprintf("tools must be at most %d", MaxTools)
	case len(c.Stop) > MaxStops:
		return fmt.Sprintf("stop must be at most %d texts", MaxStops)
	case c.MaxTokens < 0 || c.MaxTokens > MaxPerMinute:
		return fmt.Sprintf("max_tokens must be from 1 to %d", MaxPerMinute)
	}
	for i := range c.Messages {
		if fault := c.Messages[i].check(); fault != "" {
			return fmt.Sprintf("messages[%d]%s", i, fault)
		}
	}
	for i := range c.Tools {
		if c.Tools[i].Name == "" {
			return fmt.Sprintf("tools[%d].name is missing", i)
		}
	}
	if _, _, ok := c.Choice(); !ok {
		return "tool_choice must be auto, none, required, or an object with the name of a tool"
	}
	return checkExtra(c.Extra)
}

// Choice returns the tool choice: auto, none or required, or the name of a tool, both "" if there is none.
func (c *Chat) Choice() (mode, tool string, ok bool) {
	if len(c.ToolChoice) == 0 || string(c.ToolChoice) == "null" {
		return "", "", true
	}
	if json.Unmarshal(c.ToolChoice, &mode) == nil {
		return mode, "", mode == "auto" || mode == "none" || mode == "required"
	}
	var named struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal(c.ToolChoice, &named)
	return "", named.Name, err == nil && named.Name != ""
}

// check returns the fault of a message, "" for none.
func (m *Message) check() string {
	switch m.Role {
	case RoleSystem, RoleUser:
	case RoleAssistant:
		if len(m.ToolCalls) > 0 {
			return ""
		}
	case RoleTool:
		if m.ToolCallID == "" {
			return ".tool_call_id is missing"
		}
	default:
		return ".role must be system, user, assistant or tool"
	}
	if _, err := m.Parts(); err != nil {
		return ".content must be a text, or a list of parts"
	}
	return ""
}

// Parts returns the content as parts, none for a content that is missing or null.
func (m *Message) Parts() ([]Part, error) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []Part{{Type: "text", Text: text}}, nil
	}
	if !jsonsize.Fits(m.Content, reflect.TypeFor[[]Part](), jsonsize.Elements) {
		return nil, errElements
	}
	var parts []Part
	err := json.Unmarshal(m.Content, &parts)
	return parts, err
}

// Check returns the first fault of an embed, "" for none.
func (e *Embed) Check() string {
	switch {
	case !ValidModel(e.Model):
		return "model " + modelRule
	case !ValidModel(e.Phase):
		return "phase " + modelRule
	case len(e.Input) == 0 || len(e.Input) > MaxInputs:
		return fmt.Sprintf("input must be from 1 to %d texts", MaxInputs)
	case e.Dimensions < 0 || e.Dimensions > 100_000:
		return "dimensions must be from 1 to 100000"
	}
	return checkExtra(e.Extra)
}

func checkExtra(extra map[string]json.RawMessage) string {
	for name := range extra {
		if slices.ContainsFunc(reserved, func(r string) bool { return strings.EqualFold(r, name) }) {
			return "extra." + name + " is set by the platform"
		}
		if !extraName.MatchString(name) {
			return "the names of extra must consist of a-z, 0-9 and _"
		}
	}
	return ""
}
