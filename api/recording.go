package api

// Recording configures which activations of a version are recorded, and how long their
// records, results and logs are kept.
type Recording struct {
	// Successes is the share of the successful synchronous activations that are recorded,
	// from 0 to 1; nil means all. Other activations are always recorded.
	Successes *float64 `json:"successes,omitempty"`
	// RetentionMS is how long ended activations are kept, in milliseconds, from MinRetentionMS to
	// MaxRetentionMS; 0 means as long as the others of the tenant.
	RetentionMS int64 `json:"retention_ms,omitempty"`
	// Events names the events of recorded activations: event.RecordOff, RecordEnds or RecordAll, as
	// for queues; "" means off.
	Events string `json:"events,omitempty" enum:"off,ends,all"`
}

// Bounds of the retention of activations and jobs. The least exceeds the longest timeout of a
// function, so that what an activation wrote while it ran is there when it ends.
const (
	MinRetentionMS = 60 * 60 * 1000
	MaxRetentionMS = 365 * 24 * 60 * 60 * 1000
)

// Skips reports whether a synchronous activation by trigger leaves no record if it succeeds.
// draw is a random number in [0, 1) that is drawn for the activation. The activations of queue
// triggers are always recorded.
func (c *VersionConfig) Skips(trigger string, draw float64) bool {
	return c.Record != nil && c.Record.Successes != nil && trigger != TriggerQueue && draw >= *c.Record.Successes
}

// RetentionMS returns how long the version's ended activations are kept, in milliseconds, 0 if
// it does not say.
func (c *VersionConfig) RetentionMS() int64 {
	if c.Record == nil {
		return 0
	}
	return c.Record.RetentionMS
}
