package hostcall

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/invoker/models"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// Models calls models. models.Client implements it and documents the methods.
type Models interface {
	Chat(ctx context.Context, who *models.Caller, raw []byte, provider string) (*ai.Answer, error)
	Embed(ctx context.Context, who *models.Caller, raw []byte, provider string) (*ai.Embeddings, error)
	Stream(ctx context.Context, who *models.Caller, raw []byte, provider string) (io.ReadCloser, error)
}

// modelCalls serves cs.ai. The requests to providers pass the egress guard, and share places and the
// count of bytes with fetch; they go to the host of the provider alone.
type modelCalls struct {
	outbound
	models Models
	// admit admits each request, with those of retries; nil admits all.
	admit func(ctx context.Context, tenant string) error
}

// newModelCalls returns the calls, behind a guard like that of newFetchCalls.
func newModelCalls(m Models, allow []netip.Prefix, resolver *net.Resolver) *modelCalls {
	guard := &egress{allow: allow, own: net.InterfaceAddrs}
	return &modelCalls{outbound: newOutbound(func() *http.Transport { return guard.transport(resolver) }), models: m}
}

func (c *modelCalls) calls() map[string]call {
	return map[string]call{
		network.Chat.Name:       handle(network.Chat, c.permit, c.chat),
		network.Embed.Name:      handle(network.Embed, c.permit, c.embed),
		network.ChatStream.Name: handle(network.ChatStream, c.permit, c.stream),
	}
}

// permit admits the providers that the version declares. The targets of a route are admitted with it.
func (*modelCalls) permit(s *Scope, a network.Prompt) string {
	if c := s.Capabilities.AI; c != nil && (a.Provider == "" || allows(c.Providers, a.Provider)) {
		return ""
	}
	name := a.Provider
	if name == "" {
		name = "NAME"
	}
	return `{"ai": {"providers": [` + quoted(shortened(name)) + `]}}`
}

// modelSlots counts the calls of an activation that are under way.
type modelSlots struct{ atomic.Int32 }

// begin begins a call of s to a provider. The caller calls end when it is over, or ends ctx. Errors:
// CodeHostInvalidArgument, ctx's.
func (c *modelCalls) begin(ctx context.Context, s *Scope, a network.Prompt) (_ context.Context, who *models.Caller, provider string, end func(), err error) {
	granted := s.Capabilities.AI
	provider = a.Provider
	if provider == "" && len(granted.Providers) == 1 && granted.Providers[0] != "*" {
		provider = granted.Providers[0]
	}
	switch {
	case c.models == nil || s.Models == nil:
		return ctx, nil, "", nil, api.Errorf(api.CodeHostAIUnavailable, "this server calls no models")
	case provider == "":
		return ctx, nil, "", nil, invalid("the provider is missing: the manifest does not name exactly one")
	case s.modelSlots.Add(1) > ai.MaxConcurrent:
		s.modelSlots.Add(-1)
		return ctx, nil, "", nil, invalid("more than %d calls and streams of cs.ai are open: await some of them first", ai.MaxConcurrent)
	}
	call := ctx
	ctx, end = context.WithCancel(ctx)
	sandbox.OnAbandon(call, end)
	context.AfterFunc(ctx, func() { s.modelSlots.Add(-1) })
	if err := c.enter(ctx, s); err != nil {
		end()
		return ctx, nil, "", nil, err
	}
	one := *s.Models
	one.Tenant, one.MaxTokens, one.Timeout = s.Tenant, granted.MaxTokens, time.Duration(granted.TimeoutMS)*time.Millisecond
	client := c.client(s, func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse })
	one.Send = func(req *http.Request) (*http.Response, error) {
		if c.admit != nil {
			if err := c.admit(req.Context(), s.Tenant); err != nil {
				return nil, err
			}
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, fetchError(req.Context(), err)
		}
		return resp, nil
	}
	one.Explain = fetchError
	return ctx, &one, provider, end, nil
}

func (c *modelCalls) chat(ctx context.Context, s *Scope, a network.Prompt, request []byte) (none wire.None, _ []byte, err error) {
	ctx, who, provider, end, err := c.begin(ctx, s, a)
	if err != nil {
		return none, nil, err
	}
	defer end()
	answer, err := c.models.Chat(ctx, who, request, provider)
	if err != nil {
		return none, nil, err
	}
	reply, err := encodeReply(ctx, answer)
	return none, reply, err
}

func (c *modelCalls) embed(ctx context.Context, s *Scope, a network.Prompt, request []byte) (none wire.None, _ []byte, err error) {
	ctx, who, provider, end, err := c.begin(ctx, s, a)
	if err != nil {
		return none, nil, err
	}
	defer end()
	found, err := c.models.Embed(ctx, who, request, provider)
	if err != nil {
		return none, nil, err
	}
	reply, err := encodeReply(ctx, found)
	return none, reply, err
}

// encodeReply encodes an answer, for which a large one waits until there is room.
func encodeReply(ctx context.Context, v any) ([]byte, error) {
	reply := mustJSON(v)
	if len(reply) > wire.MaxCallBlob {
		return nil, api.Errorf(api.CodeHostAIFailed, "the answer has more than %s", api.SizeText(wire.MaxCallBlob))
	}
	if len(reply) > smallReply {
		if err := sandbox.ReserveReply(ctx, int64(len(reply))); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

// stream opens a streamed answer, which BodyRead reads. It is open until it has been read, or is
// cancelled, or the activation ends.
func (c *modelCalls) stream(ctx context.Context, s *Scope, a network.Prompt, request []byte) (out network.Handle, _ []byte, err error) {
	ctx, who, provider, end, err := c.begin(ctx, s, a)
	if err != nil {
		return out, nil, err
	}
	body, err := c.models.Stream(ctx, who, request, provider)
	if err != nil {
		end()
		return out, nil, err
	}
	in := newIncoming(ctx, body, end)
	out.ID, err = s.connections.add(in)
	if err != nil {
		in.close()
	}
	return out, nil, err
}
