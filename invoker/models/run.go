package models

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/providers/routes"
)

const (
	// maxWait bounds each wait of a call for a limit, for a circuit, or before a retry: a sandbox should
	// not be kept for longer. Beyond it the function learns how long it should wait.
	maxWait = 30 * time.Second
	// The pauses before retries, which double.
	firstPause = 250 * time.Millisecond
	maxPause   = 8 * time.Second
	// longestWait is more than any wait.
	longestWait = 24 * time.Hour
	// maxRequests bounds the requests of a call to all of its targets together.
	maxRequests = 32
	// probeWait is the wait for the probe of another call.
	probeWait = 200 * time.Millisecond
)

// waitReasons are the reasons of the failures of admit.
var waitReasons = map[int]string{rateLimited: "its limits a minute are used up", overloaded: "its circuit is open after failures"}

// attempt is one request to a target.
type attempt struct {
	routes.Target

	beganMS int64
	began   time.Time
	taken   providers.Amounts
	tries   int // of the call, with this one
	// probe is the circuit that the attempt probes, the zero Circuit if it probes none.
	probe providers.Circuit
	// sent reports that the request was sent, and not refused by the provider: it may cost.
	sent      atomic.Bool
	accounted bool
}

// run makes a call: it tries the targets in their order, and again after a wait, until one of them has
// served it, a failure that is not the provider's ends it, or no target has retries left. need returns
// the amounts of a target. Errors: CodeHostAIRateLimited and CodeHostAIUnavailable for failures of
// providers; those of try, ctx's, CodeStoreUnavailable.
func (c *Client) run(ctx context.Context, who *Caller, targets []routes.Target, need providers.Amounts, try func(context.Context, *attempt) error) error {
	if who.Admit != nil {
		if err := who.Admit(ctx); err != nil {
			return err
		}
	}
	tries, total := make([]int, len(targets)), 0
	patience := time.Duration(0)
	if len(targets) == 1 {
		patience = within(ctx, maxWait)
	}
	var last error
	for {
		soonest, left := longestWait, false
		for i, t := range targets {
			if tries[i] > t.Provider.Retries() || total >= maxRequests {
				continue
			}
			left = true
			a := &attempt{Target: t, taken: need, tries: total + 1}
			wait, kind, err := c.admit(ctx, who, a, patience)
			if err != nil {
				return err
			}
			if wait > 0 {
				soonest = min(soonest, wait)
				if last == nil {
					last = &failure{kind: kind, provider: t.Provider.Name, reason: waitReasons[kind]}
				}
				continue
			}
			tries[i]++
			total++
			err = c.once(ctx, who, a, try)
			var f *failure
			if !errors.As(err, &f) || !f.moves() {
				return shown(err, 0)
			}
			last, soonest = err, min(soonest, max(pauseAfter(tries[i]), f.retryAfter))
		}
		if !left || total >= maxRequests {
			return shown(last, 0)
		}
		if soonest > within(ctx, maxWait) {
			return shown(last, soonest)
		}
		if err := sleep.For(ctx, soonest); err != nil {
			return err
		}
	}
}

// within returns most, or the time until ctx ends if that is less.
func within(ctx context.Context, most time.Duration) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		return min(most, time.Until(at))
	}
	return most
}

// pauseAfter returns the pause after a number of tries.
func pauseAfter(tries int) time.Duration {
	return min(maxPause, firstPause<<min(tries-1, 10))
}

// shown returns an error as the function sees it.
func shown(err error, wait time.Duration) error {
	var f *failure
	if errors.As(err, &f) {
		return f.public(wait)
	}
	return err
}

// admit passes a call through the circuit and the limits of its target. It returns 0, or how long the
// call should wait, and the kind of failure that this is. Errors: CodeStoreUnavailable, ctx's.
func (c *Client) admit(ctx context.Context, who *Caller, a *attempt, patience time.Duration) (wait time.Duration, kind int, err error) {
	view, err := c.registry.View(ctx, who.Tenant)
	if err != nil {
		return 0, 0, err
	}
	circuit, now := view.Circuit(a.Provider.Name), c.store.NowMS()
	if now < circuit.UntilMS {
		return time.Duration(circuit.UntilMS-now) * time.Millisecond, overloaded, nil
	}
	wait, err = c.limiter.Take(ctx, who.Tenant, a.Provider, a.taken, patience)
	if wait > 0 || err != nil || circuit.UntilMS == 0 {
		return wait, rateLimited, err
	}
	mine, probe, err := c.registry.Probe(ctx, who.Tenant, a.Provider.Name)
	if mine {
		a.probe = probe
	}
	if mine || err != nil {
		return 0, 0, err
	}
	// The amounts were not used.
	return probeWait, overloaded, c.limiter.Settle(ctx, who.Tenant, a.Provider, a.taken, providers.Amounts{})
}

// once makes one request, and tells the circuit of its provider how it went.
func (c *Client) once(ctx context.Context, who *Caller, a *attempt, try func(context.Context, *attempt) error) error {
	a.began, a.beganMS = time.Now(), c.store.NowMS()
	err := try(ctx, a)
	var f *failure
	isFailure := errors.As(err, &f)
	if isFailure {
		f.provider = a.Provider.Name
	}
	c.metrics.ended(err, f)
	if !a.accounted {
		c.unused(ctx, who, a)
	}
	switch {
	case isFailure && f.moves():
		c.failed(ctx, who, a, f)
	case err == nil || isFailure:
		c.served(ctx, who, a)
	case a.probe != providers.Circuit{}:
		c.released(ctx, who, a)
	}
	return err
}

// released ends a probe that says nothing about its provider. ctx may have ended.
func (c *Client) released(ctx context.Context, who *Caller, a *attempt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	if err := c.registry.Release(ctx, who.Tenant, a.Provider.Name, a.probe); err != nil {
		c.logger.Warn("the probe of a provider was not released", zap.String("tenant", who.Tenant), zap.String("provider", a.Provider.Name), zap.Error(err))
	}
}

// failed counts a failure of a provider. ctx may have ended.
func (c *Client) failed(ctx context.Context, who *Caller, a *attempt, f *failure) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	_, err := c.registry.Failed(ctx, who.Tenant, a.Provider.Name, providers.Failure{
		BeganMS: a.beganMS, RetryAfter: f.retryAfter, Overloaded: f.kind == rateLimited || f.kind == overloaded,
	})
	if err != nil {
		c.logger.Warn("the failure of a provider was not counted", zap.String("tenant", who.Tenant), zap.String("provider", a.Provider.Name), zap.Error(err))
	}
}

// served closes the circuit of a provider that has answered.
func (c *Client) served(ctx context.Context, who *Caller, a *attempt) {
	view, err := c.registry.View(ctx, who.Tenant)
	if err != nil || view.Circuit(a.Provider.Name) == (providers.Circuit{}) {
		return
	}
	if err := c.registry.Succeeded(ctx, who.Tenant, a.Provider.Name, a.beganMS); err != nil {
		c.logger.Warn("the circuit of a provider was not closed", zap.String("tenant", who.Tenant), zap.String("provider", a.Provider.Name), zap.Error(err))
	}
}

// unused returns the tokens of a call that had none. Its request counts.
func (c *Client) unused(ctx context.Context, who *Caller, a *attempt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	c.settle(ctx, who, a, providers.Amounts{Requests: a.taken.Requests})
}

// settle corrects the limits of a provider. A failure makes other calls wait too long or too short.
func (c *Client) settle(ctx context.Context, who *Caller, a *attempt, used providers.Amounts) {
	err := c.limiter.Settle(ctx, who.Tenant, a.Provider, a.taken, used)
	a.taken = used
	if err != nil && api.ErrorCode(err) != api.CodeStoreUnavailable {
		c.logger.Warn("the limits of a provider were not corrected", zap.String("tenant", who.Tenant), zap.String("provider", a.Provider.Name), zap.Error(err))
	}
}
