package api

import (
	"maps"
	"slices"
)

// NewBinding is the request that creates a worker binding. Empty fields take their defaults.
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

// Binding returns the record of the new binding, with its defaults.
func (n *NewBinding) Binding() WorkerBinding {
	b := WorkerBinding{
		Name: n.Name, Domain: n.Domain, Tasklist: n.Tasklist, WorkerID: n.WorkerID, ActivityMap: n.ActivityMap,
		Pollers: n.Pollers, Limits: n.Limits, Enabled: n.Enabled == nil || *n.Enabled,
	}
	b.Normalize()
	return b
}

// BindingChange is a partial update of a worker binding. A nil field is left unchanged,
// a zero value sets the default.
type BindingChange struct {
	Domain      *string
	Tasklist    *string
	WorkerID    *string
	ActivityMap *map[string]JobTarget // replaces the whole map
	Pollers     *BindingPollers
	Limits      *BindingLimits
	Enabled     *bool
}

// Disables reports whether the change disables the binding and changes nothing else.
func (c *BindingChange) Disables() bool {
	return c.Enabled != nil && !*c.Enabled && *c == (BindingChange{Enabled: c.Enabled})
}

// Apply applies the change to b and sets defaults.
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

// ActivityTypes returns the types of the activity map in order.
func (b *WorkerBinding) ActivityTypes() []string { return slices.Sorted(maps.Keys(b.ActivityMap)) }
