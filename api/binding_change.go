package api

import (
	"maps"
	"slices"
)

// NewBinding is a worker binding that is to be made. What is left out has a default.
type NewBinding struct {
	Name        string               `json:"name"`
	Domain      string               `json:"domain"`
	Tasklist    string               `json:"tasklist"`
	WorkerID    string               `json:"worker_id,omitempty"`
	ActivityMap map[string]JobTarget `json:"activity_map"`
	Pollers     BindingPollers       `json:"pollers,omitzero"`
	Limits      BindingLimits        `json:"limits,omitzero"`
	Enabled     *bool                `json:"enabled,omitempty"` // default true
}

// Binding is the record that n makes, with its defaults.
func (n *NewBinding) Binding() WorkerBinding {
	b := WorkerBinding{
		Name: n.Name, Domain: n.Domain, Tasklist: n.Tasklist, WorkerID: n.WorkerID, ActivityMap: n.ActivityMap,
		Pollers: n.Pollers, Limits: n.Limits, Enabled: n.Enabled == nil || *n.Enabled,
	}
	b.Normalize()
	return b
}

// BindingChange is what of a worker binding is to be another; nil leaves it, and a
// zero value gives the default.
type BindingChange struct {
	Domain      *string
	Tasklist    *string
	WorkerID    *string
	ActivityMap *map[string]JobTarget // the whole of it
	Pollers     *BindingPollers
	Limits      *BindingLimits
	Enabled     *bool
}

// Disables says whether c takes the binding out of work, and changes nothing else.
func (c *BindingChange) Disables() bool {
	return c.Enabled != nil && !*c.Enabled && *c == (BindingChange{Enabled: c.Enabled})
}

// Apply makes b what c wants, with its defaults.
func (c *BindingChange) Apply(b *WorkerBinding) {
	if c.Domain != nil {
		b.Domain = *c.Domain
	}
	if c.Tasklist != nil {
		b.Tasklist = *c.Tasklist
	}
	if c.WorkerID != nil {
		b.WorkerID = *c.WorkerID
	}
	if c.ActivityMap != nil {
		b.ActivityMap = *c.ActivityMap
	}
	if c.Pollers != nil {
		b.Pollers = *c.Pollers
	}
	if c.Limits != nil {
		b.Limits = *c.Limits
	}
	if c.Enabled != nil {
		b.Enabled = *c.Enabled
	}
	b.Normalize()
}

// ActivityTypes are the types of the activity map, in order.
func (b *WorkerBinding) ActivityTypes() []string { return slices.Sorted(maps.Keys(b.ActivityMap)) }
