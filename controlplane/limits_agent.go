package controlplane

import (
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/storage/spending"
)

// AgentLimits bound iterations, usage and prices. Amounts are in dollars.
type AgentLimits struct {
	MaxIterations      Bound     `json:"max_iterations"`
	KeptIterations     int       `json:"kept_iterations"`
	IterationTimeoutMS Bound     `json:"iteration_timeout_ms"`
	MaxUSD             agent.USD `json:"max_usd"` // of an entry, a limit or a price
	TraceBytes         int       `json:"trace_bytes"`
	ResultBytes        int       `json:"result_bytes"`  // of an iteration
	UsageEntries       int       `json:"usage_entries"` // of a report
	UsageTokens        int64     `json:"usage_tokens"`  // of an entry
	NameLength         int       `json:"name_length"`   // of a model, a provider, a phase
	IterationLines     int       `json:"iteration_lines"`
	DayRows            int       `json:"day_rows"` // of the sums of a day
	Prices             int       `json:"prices"`   // of a tenant
	ReportDays         int       `json:"report_days"`
	SumsRetentionMS    int64     `json:"sums_retention_ms"`
}

// BudgetLimits bound budgets. MaxUSD is in dollars.
type BudgetLimits struct {
	Budgets int       `json:"budgets"` // of a tenant
	MaxUSD  agent.USD `json:"max_usd"`
}

func agentLimits() AgentLimits {
	return AgentLimits{
		MaxIterations:      Bound{Min: 1, Max: agent.MaxIterations, Default: agent.DefaultMaxIterations},
		KeptIterations:     agent.KeptIterations,
		IterationTimeoutMS: Bound{Min: agent.MinTimeoutMS, Max: agent.MaxTimeoutMS},
		MaxUSD:             agent.MaxUSD,
		TraceBytes:         agent.MaxTraceBytes,
		ResultBytes:        agent.MaxResultBytes,
		UsageEntries:       agent.MaxEntries,
		UsageTokens:        agent.MaxTokens,
		NameLength:         agent.MaxNameLength,
		IterationLines:     agent.MaxLines,
		DayRows:            agent.MaxRows,
		Prices:             agent.MaxPrices,
		ReportDays:         spending.MaxDays,
		SumsRetentionMS:    spending.KeepMS,
	}
}

func budgetLimits() BudgetLimits {
	return BudgetLimits{Budgets: budget.MaxBudgets, MaxUSD: agent.MaxUSD}
}
