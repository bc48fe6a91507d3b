package models

import (
	"context"
	"time"

	"github.com/codesous/sous/api/ai"
)

// Embed returns the vectors of texts. Errors: as those of Chat.
func (c *Client) Embed(ctx context.Context, who *Caller, raw []byte, provider string) (*ai.Embeddings, error) {
	ctx, cancel := who.bounded(ctx)
	defer cancel()
	req := &ai.Embed{}
	if err := decodeRequest(raw, req); err != nil {
		return nil, err
	}
	req.Provider = provider
	if fault := req.Check(); fault != "" {
		return nil, invalid("%s", fault)
	}
	of := size{input: tokensOf(len(raw))}
	targets, err := c.targets(ctx, who.Tenant, req.Provider, req.Model, of)
	if err != nil {
		return nil, err
	}
	var out *ai.Embeddings
	err = c.run(ctx, who, targets, of.amounts(), func(ctx context.Context, a *attempt) error {
		found, err := c.vectors(ctx, who, a, req)
		if err != nil {
			spent := c.cutOff(ctx, who, a, ai.Spent{InputTokens: of.input, Estimated: true}, req.Phase)
			c.log(who, a, "embed", spent, err, raw, nil)
			return err
		}
		out = found
		if found.Usage.Estimated {
			found.Usage.InputTokens = of.input
		}
		err = c.account(ctx, who, a, &found.Usage, req.Phase)
		c.log(who, a, "embed", &found.Usage, err, raw, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// vectors makes one request.
func (c *Client) vectors(ctx context.Context, who *Caller, a *attempt, req *ai.Embed) (*ai.Embeddings, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(a.Provider.TimeoutMS)*time.Millisecond, errTooLong)
	defer cancel()
	one := *req
	one.Model = a.Model
	path, fields, err := protocolOf(a.Provider).embed(a.Provider, &one)
	if err != nil {
		return nil, err
	}
	ex, err := c.open(ctx, who, a, path, fields)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ex.body.Close() }() // it has been read or given up
	text, err := c.whole(ctx, who, ex)
	if err != nil {
		return nil, err
	}
	found, err := protocolOf(a.Provider).embeddings(text, len(req.Input))
	if err != nil {
		return nil, err
	}
	found.Provider = a.Provider.Name
	if found.Model == "" {
		found.Model = a.Model
	}
	return found, nil
}
