// Package durable declares the host calls of durable steps.
package durable

import (
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// The calls of durable steps. The blob of the reply to Load is the steps of the run as a JSON
// array, without those that other activations write meanwhile: there are none. The blob of Record
// is the result of the step, empty for undefined, and that of the reply to Park an array of
// step.Arrival: if it is not empty, the activation continues.
var (
	Load   = wire.Call[wire.None, Clock]{Name: "step.load"}
	Record = wire.Call[Entry, wire.None]{Name: "step.record"}
	Park   = wire.Call[Waits, wire.None]{Name: "step.park"}
)

// Clock is the time of the store, by which steps are due.
type Clock struct {
	NowMS int64 `json:"now_ms"`
}

// Entry is the record of a step. Taken is the arrival that ended it.
type Entry struct {
	Step  step.Step `json:"step"`
	Taken string    `json:"taken,omitempty"`
}

// Waits are the steps that an activation waits for, all of them.
type Waits struct {
	Waits []step.Step `json:"waits"`
}
