package child

import (
	"encoding/json"
	"strings"

	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// answerMCP plays an MCP server, whose behaviour the last part of the URL selects. What it received is in
// the results.
func answerMCP(head network.FetchRequest, body []byte) *wire.HostReply {
	reply := func(status int, headers string, text string) *wire.HostReply {
		raw, _ := json.Marshal(struct {
			Status  int             `json:"status"`
			Headers json.RawMessage `json:"headers"`
		}{status, json.RawMessage(headers)})
		return &wire.HostReply{OK: true, Head: raw, Blob: []byte(text)}
	}
	const asJSON, asEvents = `[["content-type","application/json"],["mcp-session-id","s1"]]`, `[["content-type","text/event-stream; charset=utf-8"]]`
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if head.Method == "DELETE" {
		return reply(405, `[]`, "")
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return reply(400, `[]`, err.Error())
	}
	headers, _ := json.Marshal(head.Headers)
	result := func(value string) string { return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + value + `}` }
	_, kind, _ := strings.Cut(head.URL, "/mcp/")
	switch {
	case m.ID == nil || m.Method == "":
		return reply(202, `[]`, "")
	case m.Method == "initialize" && kind == "old":
		return reply(200, asJSON, result(`{"protocolVersion":"2024-11-05"}`))
	case m.Method == "initialize" && kind == "refuses":
		return reply(401, `[["content-type","application/problem+json"]]`, `{"detail":"no key"}`)
	case m.Method == "initialize":
		return reply(200, asJSON, result(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"},"instructions":"be kind"}`))
	case kind == "fails":
		return reply(200, asJSON, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32602,"message":"unknown tool","data":{"a":1}}}`)
	case kind == "cut":
		return reply(200, asEvents, "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")
	case kind == "none":
		return reply(200, asJSON, "<html>")
	case kind == "huge":
		return reply(200, asEvents, "data: "+strings.Repeat("x", 6<<20)+"\n\n")
	case kind == "gone":
		return reply(404, `[]`, "")
	case kind == "events":
		progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(m.ID) + `,"progress":1}}`
		ping := `{"jsonrpc":"2.0","id":"p1","method":"ping"}`
		return reply(200, asEvents, ": hello\r\n\r\nid: 1\r\ndata:\r\n\r\nevent: message\rdata: "+progress+"\r\rdata: "+ping+"\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":"+string(m.ID)+",\"result\":{\"text\":\"grüß\"}}\n\ndata: late\n\n")
	}
	return reply(200, asJSON, result(`{"method":"`+m.Method+`","params":`+string(m.Params)+`,"headers":`+string(headers)+`}`))
}
