// Package network declares the host calls that reach other servers: fetch and WebSocket.
package network

import "github.com/codesous/sous/invoker/sandbox/wire"

// The calls of fetch. The blob of Fetch is the body of the request, the reply's blob the body
// of the response or its beginning. BodyRead waits for the next part of a body, which is the
// reply's blob; BodyCancel ends the exchange.
var (
	Fetch      = wire.Call[FetchRequest, FetchResponse]{Name: "http.fetch"}
	BodyRead   = wire.Call[Handle, BodyPart]{Name: "http.read"}
	BodyCancel = wire.Call[Handle, wire.None]{Name: "http.cancel"}
)

// Limits of Fetch.
const (
	MaxFetchRequestBytes = wire.MaxCallBlob
	MaxFetchHeaders      = 256
)

// MaxOpenConnections bounds the responses with a body to come, and the sockets, of one
// activation. Each may have a call that waits; it is less than the calls that the parent
// performs at once, so that some are left for others.
const MaxOpenConnections = 32

// Handle names a response or a socket that the activation holds open.
type Handle struct {
	ID uint64 `json:"id"`
}

// BodyPart reports whether the body ends with this part, which may then be empty.
type BodyPart struct {
	End bool `json:"end"`
}

// FetchRequest is a request without its body. Redirect is follow, error or manual.
type FetchRequest struct {
	URL      string      `json:"url"`
	Method   string      `json:"method"`
	Headers  [][2]string `json:"headers"`
	Redirect string      `json:"redirect"`
}

// FetchResponse is a response without its body. URL is that of the last redirect. Body names
// the rest of a body that has more parts than the first; 0 for one that is whole. Gzip reports that
// the body is compressed, because the host asked for that and not the script.
type FetchResponse struct {
	Body       uint64      `json:"body,omitempty"`
	Gzip       bool        `json:"gzip,omitempty"`
	Status     int         `json:"status"`
	StatusText string      `json:"status_text"`
	URL        string      `json:"url"`
	Redirected bool        `json:"redirected"`
	Headers    [][2]string `json:"headers"`
}

// The calls of WebSocket. The blob of SocketSend is a message, the reply's blob of
// SocketReceive the next one. SocketReceive waits; SocketSend waits until the network has taken
// the message.
var (
	SocketOpen    = wire.Call[SocketRequest, SocketReply]{Name: "ws.open"}
	SocketSend    = wire.Call[SocketMessage, wire.None]{Name: "ws.send"}
	SocketReceive = wire.Call[Handle, SocketEvent]{Name: "ws.receive"}
	SocketClose   = wire.Call[SocketEnd, wire.None]{Name: "ws.close"}
)

// MaxSocketMessage bounds a message in each direction, in bytes.
const MaxSocketMessage = wire.MaxCallBlob

// SocketRequest opens a socket. URL has the scheme ws or wss.
type SocketRequest struct {
	URL       string   `json:"url"`
	Protocols []string `json:"protocols,omitempty"`
}

// SocketReply is an open socket. Protocol is the one that the server chose, "" for none.
type SocketReply struct {
	ID       uint64 `json:"id"`
	Protocol string `json:"protocol"`
}

// SocketMessage is the head of a message.
type SocketMessage struct {
	ID   uint64 `json:"id"`
	Text bool   `json:"text"`
}

// SocketEvent is a message, or the end of the socket. Code is 1006 if the server did not close
// it in order. Error says why, "" for an end in order.
type SocketEvent struct {
	Text   bool   `json:"text,omitempty"`
	Closed bool   `json:"closed,omitempty"`
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
}

// SocketEnd closes a socket in order. Code 0 is none.
type SocketEnd struct {
	ID     uint64 `json:"id"`
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}
