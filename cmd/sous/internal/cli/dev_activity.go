package cli

import (
	"fmt"
	"sync"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// devActivity prints what the functions of sous dev log, and how their activations end. It
// implements invoker.Observer.
type devActivity struct {
	app   *command.App
	quiet bool // print nothing

	printing sync.Mutex
	errors   map[string]api.LogLine // the last error that an activation that runs has logged
}

// Logged implements invoker.Observer.
func (d *devActivity) Logged(act *api.Activation, line api.LogLine) {
	if line.Level == "error" {
		d.printing.Lock()
		if d.errors == nil {
			d.errors = map[string]api.LogLine{}
		}
		d.errors[act.ActivationID] = line
		d.printing.Unlock()
	}
	d.print(d.app.ActivityLine(devName(act), act.ActivationID, line))
}

// Ended implements invoker.Observer.
func (d *devActivity) Ended(act *api.Activation) {
	d.printing.Lock()
	last := d.errors[act.ActivationID]
	delete(d.errors, act.ActivationID)
	d.printing.Unlock()
	d.print(d.app.ActivityEnd(devName(act), act, command.ShowsError(last, act.Error)))
}

func (d *devActivity) print(text string) {
	if d.quiet {
		return
	}
	d.printing.Lock()
	defer d.printing.Unlock()
	_, _ = fmt.Fprintln(d.app.Stdout, text) // a terminal that is gone is no failure of a function
}

// devName returns the function of an activation, with its tenant and namespace where these are
// not the default ones.
func devName(act *api.Activation) string {
	name := act.Function
	if act.Namespace != command.DefaultNamespace || act.Tenant != command.DefaultTenant {
		name = act.Namespace + "/" + name
	}
	if act.Tenant != command.DefaultTenant {
		name = act.Tenant + "/" + name
	}
	return name
}
