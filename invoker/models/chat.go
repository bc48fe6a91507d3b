package models

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage/providers"
)

// guessedOutput is the estimate of the output of a call without max_tokens.
const guessedOutput = 1024

// Chat asks a model. Errors: CodeHostInvalidArgument, CodeHostAIProviderNotFound, CodeHostAIFailed if the
// provider refused the request or its answer cannot be read, CodeHostAIRateLimited,
// CodeHostAIUnavailable, those of Keys, of Caller.Send and of Caller.Spend, CodeStoreUnavailable, ctx's.
func (c *Client) Chat(ctx context.Context, who *Caller, raw []byte, provider string) (*ai.Answer, error) {
	ctx, cancel := who.bounded(ctx)
	defer cancel()
	req, of, err := parseChat(raw, provider, who)
	if err != nil {
		return nil, err
	}
	targets, err := c.targets(ctx, who.Tenant, req.Provider, req.Model, of)
	if err != nil {
		return nil, err
	}
	var out *ai.Answer
	err = c.run(ctx, who, targets, of.amounts(), func(ctx context.Context, a *attempt) error {
		answer, text, err := c.ask(ctx, who, a, req)
		if err == nil {
			out = answer
			if answer.Usage.Estimated {
				answer.Usage.InputTokens, answer.Usage.OutputTokens = of.input, tokensOf(len(text))
			}
			err = c.account(ctx, who, a, &answer.Usage, req.Phase)
			c.log(who, a, "chat", &answer.Usage, err, raw, text)
			return err
		}
		spent := c.cutOff(ctx, who, a, ai.Spent{InputTokens: of.input, Estimated: true}, req.Phase)
		c.log(who, a, "chat", spent, err, raw, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// bounded returns ctx with the timeout of the capability.
func (who *Caller) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if who.Timeout > 0 {
		return context.WithTimeout(ctx, who.Timeout)
	}
	return context.WithCancel(ctx)
}

// ask makes one request. text is the answer as the provider sent it.
func (c *Client) ask(ctx context.Context, who *Caller, a *attempt, req *ai.Chat) (answer *ai.Answer, text []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(a.Provider.TimeoutMS)*time.Millisecond, errTooLong)
	defer cancel()
	one := *req
	one.Model = a.Model
	path, fields, err := protocolOf(a.Provider).chat(a.Provider, &one, false)
	if err != nil {
		return nil, nil, err
	}
	ex, err := c.open(ctx, who, a, path, fields)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = ex.body.Close() }() // it has been read or given up
	text, err = c.whole(ctx, who, ex)
	if err != nil {
		return nil, nil, err
	}
	answer, err = protocolOf(a.Provider).answer(text)
	if err != nil {
		return nil, text, err
	}
	return finished(answer, a), text, nil
}

// finished sets what all protocols have in common.
func finished(answer *ai.Answer, a *attempt) *ai.Answer {
	answer.Provider = a.Provider.Name
	if answer.Model == "" {
		answer.Model = a.Model
	}
	if answer.ToolCalls == nil {
		answer.ToolCalls = []ai.ToolCall{}
	}
	content, _ := api.EncodeJSON(answer.Text) // a text always encodes
	answer.Message = ai.Message{Role: ai.RoleAssistant, Content: content, ToolCalls: answer.ToolCalls}
	return answer
}

// parseChat reads a request, and checks it. Errors: CodeHostInvalidArgument.
func parseChat(raw []byte, provider string, who *Caller) (*ai.Chat, size, error) {
	req := &ai.Chat{}
	if err := decodeRequest(raw, req); err != nil {
		return nil, size{}, err
	}
	req.Provider = provider
	if fault := req.Check(); fault != "" {
		return nil, size{}, invalid("%s", fault)
	}
	if who.MaxTokens > 0 {
		if req.MaxTokens > who.MaxTokens {
			return nil, size{}, invalid("max_tokens must be at most %d, the maxTokens of the capability ai", who.MaxTokens)
		}
		if req.MaxTokens == 0 {
			req.MaxTokens = who.MaxTokens
		}
	}
	of := size{tokensOf(len(raw)), req.MaxTokens}
	if of.output == 0 {
		of.output = guessedOutput
	}
	return req, of, nil
}

// decodeRequest decodes the request of a function. Errors: CodeHostInvalidArgument.
func decodeRequest[T any](raw []byte, into *T) error {
	if !ai.Fits[T](raw) {
		return invalid("a request must have at most %s, and fewer elements than this one", api.SizeText(ai.MaxRequestBytes))
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return invalid("the request is not of its form: %s", faultOf(err))
	}
	return nil
}

// faultOf names the field of a request that cannot be read.
func faultOf(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return kind.Field + " must not be a " + kind.Value
	}
	return "it is no JSON object"
}

// size is the estimate of a call's tokens.
type size struct{ input, output int64 }

// amounts returns the estimate as amounts of limits.
func (s size) amounts() providers.Amounts {
	return providers.Amounts{Requests: 1, Input: s.input, Output: s.output}
}
