// Package mirror has the status of the mirror of a replica. Package storage/mirror keeps the mirror.
package mirror

// The states of a mirror.
const (
	// StateServing: the rows are complete but for the lag.
	StateServing = "serving"
	// StateRebuilding: rows may be missing, and those of deleted records may be there. Reader can be
	// used.
	StateRebuilding = "rebuilding"
	// StateStopped: there is no file, or nothing can be written to it. It is tried again.
	StateStopped = "stopped"
)

// Status describes a mirror at a moment.
type Status struct {
	State string `json:"state"`
	// Serves reports whether Reader can be used.
	Serves bool `json:"serves"`
	// Rebuilding reports that a rebuild is in progress.
	Rebuilding bool `json:"rebuilding"`
	// LagMS is how long ago the oldest event happened that is not in the rows yet, in milliseconds.
	// It is 0 if none is known.
	LagMS int64 `json:"lag_ms"`
	// Progress is the part of the rebuild that is done, from 0 to 1; 1 without a rebuild.
	Progress float64 `json:"progress"`
	// Jobs and Activations are the numbers of rows.
	Jobs        int64 `json:"jobs"`
	Activations int64 `json:"activations"`
	// Bytes is the size of the file.
	Bytes int64 `json:"bytes"`
	// Reason is why the mirror is stopped or being rebuilt, "" if it is neither.
	Reason string `json:"reason,omitempty"`
	// SinceMS is when the state began, in milliseconds since 1970.
	SinceMS int64 `json:"since_ms"`
}
