package models

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage/providers"
)

// recordWithin bounds a write of usage.
const recordWithin = 10 * time.Second

// maxLogged bounds the prompt and the answer in a line of the log, in bytes each.
const maxLogged = 12 << 10

// errTooLong ends a request that takes longer than its provider allows.
var errTooLong = errors.New("models: the request took longer than its provider allows")

// textOf returns the text of an error without its code.
func textOf(err error) string {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded.Message
	}
	return err.Error()
}

// tokensOf estimates the tokens of a text of so many bytes.
func tokensOf(bytes int) int64 { return int64(bytes+3) / 4 }

// account records what a call has used: it corrects the limits of the provider, computes the cost, and
// stores the usage, also if ctx has ended. Errors: those of Caller.Spend.
func (c *Client) account(ctx context.Context, who *Caller, a *attempt, spent *ai.Spent, phase string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	a.accounted = true
	c.settle(ctx, who, a, providers.Amounts{
		Requests: a.taken.Requests, Input: spent.InputTokens + spent.CacheCreationTokens + spent.CacheReadTokens, Output: spent.OutputTokens,
	})
	entries := []agent.Usage{spent.Usage(a.Provider.Name, a.Model, phase)}
	if c.prices != nil {
		priced, err := c.prices.Apply(ctx, who.Tenant, entries)
		if err == nil {
			entries = priced
		} else {
			c.logger.Warn("usage of a model has no cost: the prices could not be read", zap.String("tenant", who.Tenant),
				zap.String("provider", a.Provider.Name), zap.String("model", a.Model), zap.Error(err))
		}
	}
	spent.CostUSD = entries[0].CostUSD
	c.metrics.spent(&entries[0])
	err := who.Spend(ctx, entries[0])
	if err != nil {
		c.logger.Error("usage of a model was not recorded", zap.String("tenant", who.Tenant), zap.String("activation_id", who.Activation),
			zap.String("provider", a.Provider.Name), zap.String("model", a.Model), zap.Error(err))
	}
	return err
}

// cutOff accounts for a request that failed after it was sent, whose usage the provider may charge all the
// same: spent is an estimate. It returns nil for a request that was not sent.
func (c *Client) cutOff(ctx context.Context, who *Caller, a *attempt, spent ai.Spent, phase string) *ai.Spent {
	if a.accounted || !a.sent.Load() {
		return nil
	}
	_ = c.account(ctx, who, a, &spent, phase) // it has logged the error; the function sees the failure of the call
	return &spent
}

// line is the line in the log of an activation about one request.
type line struct {
	AI struct {
		Op       string    `json:"op"`
		Provider string    `json:"provider"`
		Model    string    `json:"model"`
		Try      int       `json:"try"`
		MS       int64     `json:"ms"`
		Outcome  string    `json:"outcome"`
		Usage    *ai.Spent `json:"usage,omitempty"`
		Prompt   string    `json:"prompt,omitempty"`
		Answer   string    `json:"answer,omitempty"`
	} `json:"ai"`
}

// log adds the line of a request, if the provider's settings ask for it. The activation's log removes
// the secrets of its version, and prompt and answer have no key of the provider.
func (*Client) log(who *Caller, a *attempt, op string, spent *ai.Spent, err error, prompt, answer []byte) {
	if a.Provider.Log == ai.LogOff || who.Log == nil {
		return
	}
	var l line
	l.AI.Op, l.AI.Provider, l.AI.Model, l.AI.Try = op, a.Provider.Name, a.Model, a.tries
	l.AI.MS, l.AI.Outcome, l.AI.Usage = time.Since(a.began).Milliseconds(), "success", spent
	if err != nil {
		l.AI.Outcome = textOf(err)
	}
	if a.Provider.Log == ai.LogFull {
		l.AI.Prompt, l.AI.Answer = excerpt(prompt), excerpt(answer)
	}
	raw, encodeErr := api.EncodeJSON(l)
	if encodeErr == nil { // our own type always encodes
		who.Log(raw)
	}
}

// excerpt returns the beginning of a text.
func excerpt(text []byte) string {
	if len(text) > maxLogged {
		return string(text[:maxLogged]) + " …"
	}
	return string(text)
}
