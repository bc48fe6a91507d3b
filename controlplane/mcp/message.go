package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/jsonsize"
	"github.com/codesous/sous/controlplane/rest"
)

// The bounds of a message. Arguments of a tool are kept as text, so only the rest is decoded into
// values, which take many times the size of their text.
const (
	maxMessage  = 4 << 20
	maxEnvelope = 64 << 10 // of a message without the arguments of its tool
	maxDepth    = 128      // of its nesting
	maxID       = 256      // of the id of a request
	maxMembers  = 64 << 10 // bytes of the decoded members of an object
)

// The methods that are answered. Others, such as those of prompts and of subscriptions, are refused:
// the SDK would serve some of them, without the bounds that this package has.
const (
	methodInitialize = "initialize"
	methodCallTool   = "tools/call"
	methodCancelled  = "notifications/cancelled"
)

var methods = map[string]bool{
	methodInitialize: true, "ping": true, "server/discover": true, "tools/list": true, methodCallTool: true,
	"resources/list": true, "resources/templates/list": true, "resources/read": true,
}

const notifications = "notifications/"

// headerVersion is the header with the version of the protocol, and sessionless the first version that
// has no sessions.
const (
	headerVersion = "Mcp-Protocol-Version"
	sessionless   = "2026-07-28"
)

// message is a request or a notification.
type message struct {
	text    []byte // as it is passed on
	id      string // as JSON; "" for a notification
	method  string
	cancels string // the id of the request that a notifications/cancelled names
}

// codeMethodNotFound is a code of JSON-RPC.
const codeMethodNotFound = -32601

// unsupportedError is the refusal of a request whose method is not answered.
type unsupportedError struct{ id json.RawMessage }

// Error implements error.
func (*unsupportedError) Error() string { return "the method is not supported" }

// write answers with the error of JSON-RPC.
func (e *unsupportedError) write(w http.ResponseWriter, r *http.Request) error {
	status := http.StatusOK
	if r.Header.Get(headerVersion) >= sessionless {
		status = http.StatusNotFound // as the protocol requires
	}
	return rest.WriteJSON(w, r, status, map[string]any{
		"jsonrpc": "2.0", "id": e.id, "error": map[string]any{"code": codeMethodNotFound, "message": e.Error()},
	})
}

func malformed(why string) error { return api.Errorf(api.CodeInvalid, "the message %s", why) }

// readMessage reads a message, and writes it again with the members that it has checked: the SDK must
// not read another message than this function, for example by names in another case. Errors: CodeInvalid,
// an unsupportedError.
func readMessage(body []byte) (*message, error) {
	if !shallow(body, maxDepth) {
		return nil, malformed("nests too deep")
	}
	members, err := membersOf(body)
	if err != nil {
		if text := bytes.TrimLeft(body, " \t\r\n"); len(text) > 0 && text[0] == '[' {
			return nil, malformed("is a batch: send one message in a request")
		}
		return nil, err
	}
	var version string
	if json.Unmarshal(members["jsonrpc"], &version) != nil || version != "2.0" {
		return nil, malformed(`must have the member "jsonrpc": "2.0"`)
	}
	m := &message{id: string(members["id"])}
	if m.id != "" && !isID(m.id) {
		return nil, malformed(`must have an id that is a string or a number, of at most 256 bytes`)
	}
	if json.Unmarshal(members["method"], &m.method) != nil {
		return nil, malformed("must have a method, which is a string")
	}
	notification := strings.HasPrefix(m.method, notifications)
	switch {
	case notification && m.id == "" || m.id != "" && methods[m.method]:
		return m, m.build(members)
	case m.id == "":
		return nil, malformed("is a request without an id")
	}
	return nil, &unsupportedError{members["id"]}
}

// membersOf returns the members of an object.
func membersOf(text []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if !jsonsize.Fits(text, reflect.TypeOf(members), maxMembers) {
		return nil, malformed("has too many members")
	}
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return nil, malformed("and its params must be JSON objects")
	}
	return members, nil
}

// isID reports whether a JSON value is the id of a request: a string or a number.
func isID(text string) bool {
	return len(text) <= maxID && (text[0] == '"' || text[0] == '-' || text[0] >= '0' && text[0] <= '9')
}

// build writes the message that is passed on.
func (m *message) build(members map[string]json.RawMessage) error {
	// The SDK passes params that are left out on as nil.
	out := map[string]any{"jsonrpc": "2.0", "method": m.method, "params": map[string]any{}}
	if m.id != "" {
		out["id"] = members["id"]
	}
	if raw := members["params"]; raw != nil {
		params, err := membersOf(raw)
		if err != nil {
			return err
		}
		if len(raw)-len(params["arguments"]) > maxEnvelope {
			return malformed("exceeds 64 KiB, without the arguments of its tool")
		}
		m.cancels = string(params["requestId"])
		out["params"] = params
	}
	var err error
	m.text, err = api.EncodeJSON(out)
	return err
}

// shallow reports whether a JSON text nests at most depth levels.
func shallow(text []byte, depth int) bool {
	quoted, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth--
			if depth < 0 {
				return false
			}
		case c == '}' || c == ']':
			depth++
		}
	}
	return true
}
