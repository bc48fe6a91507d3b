// Package policy defines the policies by which jobs are held for approval, and delegations of votes.
package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/approval"
)

// Limits of policies and delegations.
const (
	MaxPolicies    = 50  // of a tenant
	MaxDelegations = 200 // of a tenant
	maxExpiryMS    = 365 * 24 * 3600 * 1000
	minExpiryMS    = 1000
	// MaxDelegationMS is the longest time for which a vote is delegated.
	MaxDelegationMS = 90 * 24 * 3600 * 1000
)

// Match selects jobs. All criteria that are set must hold.
type Match struct {
	Queue      string     `json:"queue,omitempty" doc:"the jobs of a queue"`
	Function   string     `json:"function,omitempty" doc:"the jobs that run a function"`
	Tag        string     `json:"tag,omitempty" doc:"the jobs with a tag, as name or name=value"`
	MinCostUSD *agent.USD `json:"min_cost_usd,omitempty" doc:"the jobs that have reported to have spent so much: they are held when they report it, not when they are enqueued"`
}

// Rules are those of a policy.
type Rules struct {
	Enabled        *bool    `json:"enabled,omitempty" doc:"true unless set"`
	Namespace      string   `json:"namespace,omitempty" doc:"only jobs of this namespace"`
	Match          Match    `json:"match"`
	Mode           string   `json:"mode,omitempty" enum:"any,all,count" doc:"which votes approve: any one, one for each of the approvers, or count of them"`
	Count          int      `json:"count,omitempty" doc:"how many votes the mode count needs"`
	Rejections     int      `json:"rejections,omitempty" doc:"how many votes reject; 1 unless set"`
	Approvers      []string `json:"approvers,omitempty" doc:"roles and ids of keys; none for every key that may decide"`
	Separate       *bool    `json:"separate,omitempty" doc:"the key that enqueued a job has no vote; true unless set, if there are approvers"`
	ExpiresAfterMS int64    `json:"expires_after_ms,omitempty" doc:"0 for never"`
	OnExpiry       string   `json:"on_expiry,omitempty" enum:"approve,reject,keep" doc:"reject unless set"`
	Message        string   `json:"message,omitempty" doc:"what the approvers are asked"`
}

// Policy is a policy as the API shows it.
type Policy struct {
	Name string `json:"name"`
	Rules
	Revision    int64 `json:"revision"`
	CreatedAtMS int64 `json:"created_at_ms"`
	UpdatedAtMS int64 `json:"updated_at_ms"`
}

// WithDefaults returns s with the defaults of fields that are not set.
func (s Rules) WithDefaults() Rules {
	s.Mode, s.OnExpiry, s.Rejections = cmp.Or(s.Mode, approval.ModeAny), cmp.Or(s.OnExpiry, approval.OnExpiryReject), max(1, s.Rejections)
	enabled, separate := true, len(s.Approvers) > 0
	if s.Enabled == nil {
		s.Enabled = &enabled
	}
	if s.Separate == nil {
		s.Separate = &separate
	}
	return s
}

// Validate checks settings with their defaults. CodeInvalid.
func (s *Rules) Validate() error {
	if s.Namespace != "" && api.ValidateName("namespace", s.Namespace) != nil {
		return api.InvalidField("namespace", "must be the name of a namespace")
	}
	if err := s.Match.validate(); err != nil {
		return err
	}
	if err := s.validateVotes(); err != nil {
		return err
	}
	switch {
	case s.ExpiresAfterMS != 0 && (s.ExpiresAfterMS < minExpiryMS || s.ExpiresAfterMS > maxExpiryMS):
		return api.InvalidField("expires_after_ms", "must be 0, or from "+strconv.Itoa(minExpiryMS)+" to "+strconv.FormatInt(maxExpiryMS, 10))
	case !slices.Contains([]string{approval.OnExpiryApprove, approval.OnExpiryReject, approval.OnExpiryKeep}, s.OnExpiry):
		return api.InvalidField("on_expiry", "must be approve, reject or keep")
	case len(s.Message) > approval.MaxMessageBytes:
		return api.InvalidField("message", "must have at most "+strconv.Itoa(approval.MaxMessageBytes)+" bytes")
	}
	return nil
}

func (s *Rules) validateVotes() error {
	if len(s.Approvers) > approval.MaxApprovers {
		return api.InvalidField("approvers", "must have at most "+strconv.Itoa(approval.MaxApprovers)+" entries")
	}
	for i, name := range s.Approvers {
		if ValidateVoter(name) != nil || slices.Contains(s.Approvers[:i], name) {
			return api.InvalidField("approvers["+strconv.Itoa(i)+"]", "must be a role or the id of a key, once")
		}
	}
	switch {
	case s.Mode != approval.ModeAny && s.Mode != approval.ModeAll && s.Mode != approval.ModeCount:
		return api.InvalidField("mode", "must be any, all or count")
	case s.Mode == approval.ModeAll && len(s.Approvers) == 0:
		return api.InvalidField("approvers", "must be given for the mode all")
	case s.Mode == approval.ModeCount && (s.Count < 1 || s.Count > approval.MaxApprovers):
		return api.InvalidField("count", "must be from 1 to "+strconv.Itoa(approval.MaxApprovers))
	case s.Mode != approval.ModeCount && s.Count != 0:
		return api.InvalidField("count", "must be left out unless the mode is count")
	case s.Rejections < 1 || s.Rejections > approval.MaxApprovers:
		return api.InvalidField("rejections", "must be from 1 to "+strconv.Itoa(approval.MaxApprovers))
	}
	return nil
}

// ValidateVoter checks the name of an approver: a role, or the id of a key. CodeInvalid.
func ValidateVoter(name string) error {
	if api.ValidateRole(name) == nil || IsKey(name) && len(name) <= 64 {
		return nil
	}
	return api.InvalidField("approvers", "must be a role or the id of a key")
}

// IsKey reports whether the name of an approver is that of a key.
func IsKey(name string) bool { return strings.HasPrefix(name, "key_") }

func (m *Match) validate() error {
	switch {
	case *m == Match{}:
		return api.InvalidField("match", "must have a queue, a function, a tag or min_cost_usd")
	case m.Queue != "" && api.ValidateQueue(m.Queue) != nil:
		return api.InvalidField("match.queue", "must be the name of a queue")
	case m.Function != "" && api.ValidateName("function", m.Function) != nil:
		return api.InvalidField("match.function", "must be the name of a function")
	case m.MinCostUSD != nil && (*m.MinCostUSD <= 0 || *m.MinCostUSD > agent.MaxUSD):
		return api.InvalidField("match.min_cost_usd", "must be more than 0 and at most 1000000 dollars")
	}
	name, value, _ := strings.Cut(m.Tag, "=")
	if m.Tag != "" && (name == "" || len(name) > api.MaxTagLength || len(value) > api.MaxTagLength) {
		return api.InvalidField("match.tag", "must be a tag as name or name=value, of at most "+strconv.Itoa(api.MaxTagLength)+" bytes each")
	}
	return nil
}

// Job is what a policy compares.
type Job struct {
	Namespace, Queue string
	Function         string // that the job runs, "" for none
	Tags             map[string]string
}

// Covers reports whether the policy is enabled and selects a job, whatever it has spent.
func (s *Rules) Covers(j *Job) bool {
	m := &s.Match
	if s.Enabled != nil && !*s.Enabled || s.Namespace != "" && s.Namespace != j.Namespace ||
		m.Queue != "" && m.Queue != j.Queue || m.Function != "" && m.Function != j.Function {
		return false
	}
	if m.Tag == "" {
		return true
	}
	name, value, exact := strings.Cut(m.Tag, "=")
	has, ok := j.Tags[name]
	return ok && (!exact || has == value)
}

// Rule returns the rule by which the policy with an id and a name holds a job.
func (s *Rules) Rule(id, name string) approval.Rule {
	return approval.Rule{
		PolicyID: id, Policy: name, Message: s.Message, Mode: s.Mode, Count: s.Count, Rejections: s.Rejections, Approvers: s.Approvers,
		Separate: s.Separate != nil && *s.Separate, ExpiresAfterMS: s.ExpiresAfterMS, OnExpiry: s.OnExpiry,
	}
}

// Delegation lets a key vote in the place of another key, or of a role, until a time.
type Delegation struct {
	ID          string `json:"id"`
	From        string `json:"from" doc:"the id of a key, or a role"`
	To          string `json:"to" doc:"the id of a key"`
	UntilMS     int64  `json:"until_ms" doc:"when it ends"`
	CreatedBy   string `json:"created_by"`
	CreatedAtMS int64  `json:"created_at_ms"`
}

// Validate checks a delegation that is made at now. CodeInvalid.
func (d *Delegation) Validate(now int64) error {
	switch {
	case ValidateVoter(d.From) != nil:
		return api.InvalidField("from", "must be a role or the id of a key")
	case !IsKey(d.To) || len(d.To) > 64:
		return api.InvalidField("to", "must be the id of a key")
	case d.From == d.To:
		return api.InvalidField("to", "must be another key")
	case d.UntilMS <= now || d.UntilMS > now+MaxDelegationMS:
		return api.InvalidField("until_ms", "must be in the future, at most 90 days ahead")
	}
	return nil
}
