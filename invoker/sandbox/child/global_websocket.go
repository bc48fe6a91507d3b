package child

import (
	"github.com/dop251/goja"
	whatwg "github.com/nlnwa/whatwg-url/url"

	"github.com/codesous/sous/invoker/sandbox/child/encoding"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// socketRows are the natives of internal/websocket. All but parse are calls of the host.
func socketRows() []row {
	return []row{
		// parse is (url): the URL with the scheme ws or wss and its origin, or undefined.
		{"parse", function("parse", 1, socketURL)},
		// open is (url, protocols): a promise of the id of a socket and its protocol.
		{"open", function("open", 2, func(r *realm, call goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				request := network.SocketRequest{URL: call.Argument(0).String()}
				for _, p := range r.sequence(call.Argument(1)) {
					request.Protocols = append(request.Protocols, p.String())
				}
				return send(r, network.SocketOpen, request, nil, func(reply network.SocketReply, _ []byte) goja.Value {
					return r.vm.NewArray(reply.ID, reply.Protocol)
				})
			})
		})},
		// send is (id, message), a text or a Uint8Array.
		{"send", function("send", 2, func(r *realm, call goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				head := network.SocketMessage{ID: uint64(call.Argument(0).ToInteger())}
				data, ok := bufferSource(call.Argument(1))
				if !ok {
					head.Text, data = true, []byte(call.Argument(1).String())
				}
				return sendOnly(r, network.SocketSend, head, data)
			})
		})},
		// receive is (id): a promise of [message], or of [undefined, code, reason, error].
		{"receive", function("receive", 1, func(r *realm, call goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				h := network.Handle{ID: uint64(call.Argument(0).ToInteger())}
				return send(r, network.SocketReceive, h, nil, func(e network.SocketEvent, data []byte) goja.Value {
					switch {
					case e.Closed:
						return r.vm.NewArray(goja.Undefined(), e.Code, e.Reason, e.Error)
					case e.Text:
						return r.vm.NewArray(encoding.DecodeUTF8(data))
					}
					return r.vm.NewArray(r.newBytes(data))
				})
			})
		})},
		// close is (id, code, reason); code 0 is none.
		{"close", function("close", 3, func(r *realm, call goja.FunctionCall) goja.Value {
			return r.promised(func() *deferred {
				return sendOnly(r, network.SocketClose, network.SocketEnd{
					ID: uint64(call.Argument(0).ToInteger()), Code: int(call.Argument(1).ToInteger()), Reason: call.Argument(2).String(),
				}, nil)
			})
		})},
	}
}

// socketURL parses the URL of a WebSocket (https://websockets.spec.whatwg.org/#dom-websocket-websocket).
func socketURL(r *realm, call goja.FunctionCall) goja.Value {
	u, err := whatwg.Parse(call.Argument(0).String())
	if err != nil {
		return goja.Undefined()
	}
	switch u.Scheme() {
	case "http":
		u.SetProtocol("ws")
	case "https":
		u.SetProtocol("wss")
	case "ws", "wss":
	default:
		return goja.Undefined()
	}
	if u.Hash() != "" || len(u.Href(false)) != len(u.Href(true)) {
		return goja.Undefined()
	}
	return r.vm.NewArray(u.Href(false), u.Scheme()+"://"+u.Host())
}
