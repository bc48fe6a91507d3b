package hostcall

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
	"github.com/codesous/sous/tracing"
)

// socketCalls serves WebSocket. A socket passes the two checks of fetch: the version's
// capability, by host name, and the egress guard, by address.
type socketCalls struct{ outbound }

func (c *socketCalls) calls() map[string]call {
	return map[string]call{
		network.SocketOpen.Name: handle(network.SocketOpen, c.permit, c.open),
		// The socket was permitted when it was opened.
		network.SocketSend.Name:    handle(network.SocketSend, free, c.send),
		network.SocketReceive.Name: handle(network.SocketReceive, free, c.receive),
		network.SocketClose.Name:   handle(network.SocketClose, free, c.end),
	}
}

// socket is a WebSocket of an activation.
type socket struct {
	conn      *websocket.Conn
	stop      func() bool // ends the wait for the end of the activation
	leave     func()      // frees the socket's place
	receiving sync.Mutex  // held by the call that waits for a message
	sending   sync.Mutex  // held by the call that sends one

	mu     sync.Mutex
	closed chan error // nil before end; holds its outcome once, which receive takes
}

func (s *socket) close() {
	s.stop()
	s.end()
}

func (s *socket) end() {
	_ = s.conn.CloseNow() // it may be closed already
	s.leave()
}

// httpURL returns the URL of the handshake, with the scheme http or https.
func httpURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Fragment != "" {
		return nil, invalid("a WebSocket needs an absolute ws or wss URL without a fragment")
	}
	switch u.Scheme {
	case "ws":
		u.Scheme = "http"
	case "wss":
		u.Scheme = "https"
	default:
		return nil, invalid("a WebSocket needs an absolute ws or wss URL without a fragment")
	}
	if u.User != nil {
		return nil, invalid("WebSocket refuses a URL with credentials")
	}
	return u, nil
}

func (*socketCalls) permit(s *Scope, a network.SocketRequest) string {
	u, err := httpURL(a.URL)
	if err != nil {
		return "" // open refuses the URL itself, with a better reason
	}
	return permitHost(s, u)
}

// open performs the handshake. Redirects are not followed, and messages are not compressed.
// A server must choose one of the requested protocols, as the standard of fetch requires beyond
// RFC 6455. The socket ends with ctx, the activation. Errors: those of fetch.
func (c *socketCalls) open(ctx context.Context, s *Scope, a network.SocketRequest, _ []byte) (out network.SocketReply, reply []byte, err error) {
	u, err := httpURL(a.URL)
	if err != nil {
		return out, nil, err
	}
	header := http.Header{"User-Agent": {"sous"}}
	tracing.Send(ctx, header)
	handshake, cancel := exchangeContext(ctx, s)
	defer cancel()
	if err := c.places.take(handshake, s.Tenant); err != nil {
		return out, nil, fetchError(handshake, err)
	}
	leave := sync.OnceFunc(func() { c.places.leave(s.Tenant) })
	defer func() {
		if out.ID == 0 {
			leave()
		}
	}()
	conn, resp, err := websocket.Dial(handshake, u.String(), &websocket.DialOptions{ //nolint:bodyclose // the connection owns it
		HTTPClient: c.client(s, func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }),
		HTTPHeader: header, Subprotocols: a.Protocols,
	})
	if err != nil {
		if resp != nil {
			return out, nil, api.Errorf(api.CodeHostFetchFailed, "the server answered the WebSocket handshake with status %d", resp.StatusCode)
		}
		return out, nil, fetchError(handshake, err)
	}
	if len(a.Protocols) > 0 && conn.Subprotocol() == "" {
		_ = conn.CloseNow() // the socket is given up
		return out, nil, api.Errorf(api.CodeHostFetchFailed, "the server chose none of the requested WebSocket protocols")
	}
	conn.SetReadLimit(network.MaxSocketMessage)
	one := &socket{conn: conn, leave: leave}
	one.stop = context.AfterFunc(ctx, one.end)
	out.ID, err = s.connections.add(one)
	if err != nil {
		one.close()
		return out, nil, err
	}
	out.Protocol = conn.Subprotocol()
	return out, nil, nil
}

// errNotText is the end of a socket whose server sent a text message that is not UTF-8.
var errNotText = errors.New("a text message is not UTF-8")

// errSocketClosed is the error of a call for a socket that the activation does not hold.
func errSocketClosed() error { return invalid("the socket is closed") }

// send sends a message, and waits until the network has taken it. Errors:
// CodeHostInvalidArgument, CodeHostFetchFailed, those of outbound.traffic.
func (*socketCalls) send(ctx context.Context, s *Scope, a network.SocketMessage, message []byte) (out wire.None, reply []byte, err error) {
	one, ok := s.connections.get(a.ID).(*socket)
	if !ok {
		return out, nil, errSocketClosed()
	}
	if !one.sending.TryLock() {
		return out, nil, invalid("another call sends a message")
	}
	defer one.sending.Unlock()
	kind := websocket.MessageBinary
	if a.Text {
		kind = websocket.MessageText
	}
	if err := one.conn.Write(ctx, kind, message); err != nil {
		if refused := (*api.Error)(nil); errors.As(err, &refused) {
			return out, nil, refused
		}
		return out, nil, api.Errorf(api.CodeHostFetchFailed, "the message was not sent: the socket is closed")
	}
	return out, nil, nil
}

// receive waits for the next message, or for the end of the socket, which is no error. A server
// whose messages are not received waits. Errors: CodeHostInvalidArgument, those of
// outbound.traffic, which also end the socket.
func (*socketCalls) receive(ctx context.Context, s *Scope, h network.Handle, _ []byte) (out network.SocketEvent, message []byte, err error) {
	one, ok := s.connections.get(h.ID).(*socket)
	if !ok {
		return out, nil, errSocketClosed()
	}
	if !one.receiving.TryLock() {
		return out, nil, invalid("another call waits for a message")
	}
	defer one.receiving.Unlock()
	kind, message, err := readMessage(ctx, one.conn)
	if err == nil && kind == websocket.MessageText && !utf8.Valid(message) { // RFC 6455, section 8.1
		_ = one.conn.Close(websocket.StatusInvalidFramePayloadData, "") // it ends in any case
		err = errNotText
	}
	if err != nil {
		s.connections.remove(h.ID)
		err = one.handshake(ctx, err)
		one.close()
		if refused := (*api.Error)(nil); errors.As(err, &refused) {
			return out, nil, refused
		}
		return socketEnd(err), nil, nil
	}
	out.Text = kind == websocket.MessageText
	return out, message, nil
}

// handshake returns what ended a socket: err, or, if the function has closed it, the answer of
// the server, which end may have read instead of receive.
func (s *socket) handshake(ctx context.Context, err error) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed == nil || websocket.CloseStatus(err) >= 0 {
		return err
	}
	select {
	case err = <-closed:
	case <-ctx.Done():
	}
	return err
}

// readMessage reads a message. The first smallReply bytes of it wait for no room.
func readMessage(ctx context.Context, conn *websocket.Conn) (kind websocket.MessageType, message []byte, err error) {
	kind, reader, err := conn.Reader(ctx)
	if err != nil {
		return 0, nil, err
	}
	message, err = io.ReadAll(io.LimitReader(reader, smallReply))
	if err != nil || len(message) < smallReply {
		return kind, message, err
	}
	if err := sandbox.ReserveReply(ctx, network.MaxSocketMessage); err != nil {
		return 0, nil, err
	}
	rest, err := io.ReadAll(reader)
	return kind, append(message, rest...), err
}

// socketEnd describes the end of a socket. Its error says no more of the host's network than
// that the connection was lost.
func socketEnd(err error) network.SocketEvent {
	var end websocket.CloseError
	if errors.As(err, &end) {
		return network.SocketEvent{Closed: true, Code: int(end.Code), Reason: end.Reason}
	}
	why := "the connection was lost"
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		why = "a message is larger than 6 MiB"
	case errors.Is(err, errNotText):
		why = err.Error()
	}
	return network.SocketEvent{Closed: true, Code: int(websocket.StatusAbnormalClosure), Error: why}
}

// end begins to close a socket: it sends the code and the reason, and waits a moment for the
// server's answer, which receive reports.
func (*socketCalls) end(_ context.Context, s *Scope, a network.SocketEnd, _ []byte) (out wire.None, reply []byte, err error) {
	one, ok := s.connections.get(a.ID).(*socket)
	if !ok {
		return out, nil, nil
	}
	code := websocket.StatusCode(a.Code)
	switch {
	case a.Code == 0:
		code = websocket.StatusNoStatusRcvd // sends none
	case a.Code != 1000 && (a.Code < 3000 || a.Code > 4999), len(a.Reason) > 123:
		return out, nil, invalid("the code of a close must be 1000 or 3000 to 4999, and its reason has at most 123 bytes")
	}
	one.mu.Lock()
	first := one.closed == nil
	if first {
		one.closed = make(chan error, 1)
	}
	one.mu.Unlock()
	if !first {
		return out, nil, nil
	}
	err = one.conn.Close(code, a.Reason)
	if err == nil { // the server has answered with the same code
		err = websocket.CloseError{Code: code, Reason: a.Reason}
	}
	one.closed <- err
	return out, nil, nil
}
