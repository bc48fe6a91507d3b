// Package budget has the vocabulary of budgets: what the jobs of a scope may spend on models, and what
// happens beyond it.
package budget

import (
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
)

const (
	// MaxBudgets bounds the budgets of a tenant.
	MaxBudgets    = 100
	maxZoneLength = 64
)

// The scopes of budgets: which jobs count. A target names a namespace; a queue or a function as
// namespace/name; a tag of jobs in any namespace as name=value.
const (
	ScopeTenant    = "tenant" // all jobs; it has no target
	ScopeNamespace = "namespace"
	ScopeQueue     = "queue"
	ScopeFunction  = "function"
	ScopeTag       = "tag"
)

// What happens to jobs when a budget is exceeded.
const (
	OnExceedHold   = "hold"   // they wait for the reset; the default
	OnExceedReject = "reject" // new ones are refused, and running ones end
	OnExceedAlert  = "alert"  // nothing; there is an event
)

// DeadBudget is why a job is dead that a budget with OnExceedReject has ended.
const DeadBudget = "budget"

// Settings are what a budget allows. At least one of the amounts is set. Zero values: OnExceed
// OnExceedHold, Zone UTC.
type Settings struct {
	Scope     string     `json:"scope" enum:"tenant,namespace,queue,function,tag"`
	Target    string     `json:"target,omitempty" doc:"a namespace; a queue or function as namespace/name; a tag as name=value; nothing for a tenant"`
	DailyUSD  *agent.USD `json:"daily_usd,omitempty" doc:"what all jobs of the scope may spend in a day"`
	PerJobUSD *agent.USD `json:"per_job_usd,omitempty" doc:"what each job of the scope may spend"`
	OnExceed  string     `json:"on_exceed,omitempty" enum:"hold,reject,alert"`
	Zone      string     `json:"zone,omitempty" doc:"the IANA time zone at whose midnight a day begins, such as Europe/Berlin; by default UTC"`
}

// Budget is a budget with its state.
type Budget struct {
	Name string `json:"name"`
	Settings
	Revision    int64     `json:"revision"`
	CreatedAtMS int64     `json:"created_at_ms"`
	UpdatedAtMS int64     `json:"updated_at_ms"`
	Day         string    `json:"day" doc:"the present day of the zone"`
	SpentUSD    agent.USD `json:"spent_usd" doc:"what the jobs of the scope have spent on this day since the budget exists"`
	Exceeded    bool      `json:"exceeded" doc:"whether daily_usd is reached on this day"`
	ResetsAtMS  int64     `json:"resets_at_ms" doc:"when the next day begins"`
	HeldJobs    int64     `json:"held_jobs" doc:"the jobs that the budget holds"`
}

// WithDefaults returns s with the defaults of the fields that have none.
func (s Settings) WithDefaults() Settings {
	if s.OnExceed == "" {
		s.OnExceed = OnExceedHold
	}
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	return s
}

// Validate checks settings that have their defaults: CodeInvalid with the field.
func (s *Settings) Validate() error {
	switch {
	case s.DailyUSD == nil && s.PerJobUSD == nil:
		return api.InvalidField("daily_usd", "or per_job_usd must be set")
	case s.DailyUSD != nil && !amount(*s.DailyUSD):
		return api.InvalidField("daily_usd", amountRule)
	case s.PerJobUSD != nil && !amount(*s.PerJobUSD):
		return api.InvalidField("per_job_usd", amountRule)
	case s.OnExceed != OnExceedHold && s.OnExceed != OnExceedReject && s.OnExceed != OnExceedAlert:
		return api.InvalidField("on_exceed", "must be hold, reject or alert")
	}
	if _, err := zoneOf(s.Zone); err != nil {
		return api.InvalidField("zone", "must be UTC or a name of the IANA time zone database, such as Europe/Berlin")
	}
	return s.validateTarget()
}

const amountRule = "must be more than 0 and at most 1000000 dollars, with at most 6 digits behind the point"

func amount(u agent.USD) bool { return u > 0 && u <= agent.MaxUSD }

// validateTarget checks the scope and its target: CodeInvalid.
func (s *Settings) validateTarget() error {
	namespace, name, both := strings.Cut(s.Target, "/")
	switch s.Scope {
	case ScopeTenant:
		if s.Target != "" {
			return api.InvalidField("target", "must be left out for the scope tenant")
		}
	case ScopeNamespace:
		if api.ValidateName("target", s.Target) != nil {
			return api.InvalidField("target", "must be the name of a namespace")
		}
	case ScopeQueue:
		if !both || api.ValidateName("target", namespace) != nil || api.ValidateQueue(name) != nil {
			return api.InvalidField("target", "must be a queue as namespace/name")
		}
	case ScopeFunction:
		if !both || api.ValidateName("target", namespace) != nil || api.ValidateName("target", name) != nil {
			return api.InvalidField("target", "must be a function as namespace/name")
		}
	case ScopeTag:
		tag, value, ok := strings.Cut(s.Target, "=")
		if !ok || tag == "" || value == "" || len(tag) > api.MaxTagLength || len(value) > api.MaxTagLength {
			return api.InvalidField("target", "must be a tag as name=value, of at most "+strconv.Itoa(api.MaxTagLength)+" bytes each")
		}
	default:
		return api.InvalidField("scope", "must be tenant, namespace, queue, function or tag")
	}
	return nil
}

// CoversQueue reports whether all jobs of a queue count.
func (s *Settings) CoversQueue(namespace, queue string) bool {
	switch s.Scope {
	case ScopeTenant:
		return true
	case ScopeNamespace:
		return s.Target == namespace
	case ScopeQueue:
		return s.Target == namespace+"/"+queue
	case ScopeFunction: // the jobs that run a function are those of its queue
		space, name, _ := strings.Cut(s.Target, "/")
		return space == namespace && api.FunctionQueuePrefix+name == queue
	}
	return false
}

// Covers reports whether a job of a queue with tags counts.
func (s *Settings) Covers(namespace, queue string, tags map[string]string) bool {
	if s.Scope != ScopeTag {
		return s.CoversQueue(namespace, queue)
	}
	tag, value, _ := strings.Cut(s.Target, "=")
	has, ok := tags[tag]
	return ok && has == value
}

// Acts reports whether the budget does more than to alert.
func (s *Settings) Acts() bool { return s.OnExceed != OnExceedAlert }

// SameScope reports whether the same jobs count in both.
func (s *Settings) SameScope(o *Settings) bool { return s.Scope == o.Scope && s.Target == o.Target }
