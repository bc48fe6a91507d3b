package network

import "github.com/codesous/sous/invoker/sandbox/wire"

// The calls of cs.ai. The blob is the request, as JSON, and the reply's blob the answer. ChatStream
// answers with a body of server-sent events, each an ai.Delta, which BodyRead reads.
var (
	Chat       = wire.Call[Prompt, wire.None]{Name: "ai.chat"}
	Embed      = wire.Call[Prompt, wire.None]{Name: "ai.embed"}
	ChatStream = wire.Call[Prompt, Handle]{Name: "ai.stream"}
)

// Prompt names the provider of a call; "" is the only one that the version may use.
type Prompt struct {
	Provider string `json:"provider,omitempty"`
}
