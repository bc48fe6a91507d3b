package wire

import (
	"github.com/codesous/sous/api/agent"
	workerv1 "github.com/codesous/sous/api/worker/v1"
)

// fromUsage converts the entries of a report.
func fromUsage(report []agent.Usage) []*workerv1.Usage {
	return convert(report, func(u agent.Usage) *workerv1.Usage {
		out := &workerv1.Usage{
			Seq: u.Seq, Phase: text(u.Phase), Model: text(u.Model), Provider: text(u.Provider), InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
			CacheCreationTokens: u.CacheCreationTokens, CacheReadTokens: u.CacheReadTokens,
		}
		if u.CostUSD != nil {
			cost := u.CostUSD.String()
			out.CostUsd = &cost
		}
		return out
	})
}

// toUsage converts the entries of a report. An amount that is none is kept as one that is refused.
func toUsage(report []*workerv1.Usage) []agent.Usage {
	return convert(report, func(u *workerv1.Usage) agent.Usage {
		out := agent.Usage{
			Seq: u.GetSeq(), Phase: u.GetPhase(), Model: u.GetModel(), Provider: u.GetProvider(), InputTokens: u.GetInputTokens(), OutputTokens: u.GetOutputTokens(),
			CacheCreationTokens: u.GetCacheCreationTokens(), CacheReadTokens: u.GetCacheReadTokens(),
		}
		if u != nil && u.CostUsd != nil {
			cost, _ := agent.ParseUSD(u.GetCostUsd())
			out.CostUSD = &cost
		}
		return out
	})
}

// fromAgent converts the options of iterations, nil for none.
func fromAgent(o *agent.Options) *workerv1.Agent {
	if o == nil {
		return nil
	}
	out := &workerv1.Agent{MaxIterations: o.MaxIterations, IterationTimeoutMs: o.IterationTimeoutMS, OnLimit: text(o.OnLimit)}
	if o.MaxCostUSD != 0 {
		out.MaxCostUsd = o.MaxCostUSD.String()
	}
	return out
}

// toAgent converts the options of iterations, nil for none.
func toAgent(o *workerv1.Agent) *agent.Options {
	if o == nil {
		return nil
	}
	out := &agent.Options{MaxIterations: o.GetMaxIterations(), IterationTimeoutMS: o.GetIterationTimeoutMs(), OnLimit: o.GetOnLimit()}
	if o.GetMaxCostUsd() != "" {
		out.MaxCostUSD, _ = agent.ParseUSD(o.GetMaxCostUsd()) // an amount that is none is refused later
	}
	return out
}

func fromProviderError(e *agent.ProviderError) *workerv1.ProviderError {
	if e == nil {
		return nil
	}
	return &workerv1.ProviderError{Provider: text(e.Provider), Kind: text(e.Kind), RetryAfterMs: e.RetryAfterMS}
}

func toProviderError(e *workerv1.ProviderError) *agent.ProviderError {
	if e == nil {
		return nil
	}
	return &agent.ProviderError{Provider: e.GetProvider(), Kind: e.GetKind(), RetryAfterMS: e.GetRetryAfterMs()}
}
