package child

import (
	"encoding/json"
	"slices"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/durable"
)

// park asks the server to continue the run later, or for what has arrived meanwhile.
func (a *activation) park() {
	s := a.steps
	s.parking = true
	waits := durable.Waits{Waits: make([]step.Step, len(s.open))}
	for i, c := range s.open {
		waits.Waits[i] = step.Step{Kind: c.Kind, Name: c.Name, N: c.N, Status: c.Status, DueAtMS: c.DueAtMS, Message: c.Message}
	}
	asked := send(a.realm, durable.Park, waits, nil, func(_ wire.None, list []byte) goja.Value {
		a.resume(list)
		return goja.Undefined()
	})
	a.onFailure(asked, func(why goja.Value) {
		s.fault, s.parking = why, false
		for _, c := range s.open {
			must(c.promise.reject(why))
		}
		s.open = nil
	})
}

// resume ends the waits whose arrival the server reports; without one the activation ends.
func (a *activation) resume(list []byte) {
	s := a.steps
	var arrived []step.Arrival
	if err := json.Unmarshal(list, &arrived); err != nil {
		panic(a.realm.newError(api.CodeInternal, "the host's answer cannot be read"))
	}
	s.parking, s.parked = false, len(arrived) == 0
	for _, arrival := range arrived {
		at := slices.IndexFunc(s.open, func(c *stepCall) bool { return c.Key() == arrival.Key })
		if at < 0 {
			continue
		}
		c := s.open[at]
		s.open = slices.Delete(s.open, at, at+1)
		c.taken = arrival.ID
		switch {
		case c.Kind == step.KindStep:
			a.realm.after("cs.step", 0, 0, func() error { return a.execute(c) })
		case arrival.ID == "":
			a.end(c, step.StatusCompleted, c.late)
		case c.Kind == step.KindApproval:
			a.end(c, step.StatusCompleted, decided(arrival.Value))
		default:
			a.end(c, step.StatusCompleted, arrival.Value)
		}
	}
}
