package child

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api/step"
)

// The defaults of steps and waits.
const (
	defaultStepAttempts = 4
	defaultBackoff      = time.Second
	defaultMaxBackoff   = 10 * time.Minute
	defaultEventWait    = 7 * 24 * time.Hour
	maxStepAttempts     = 100
)

// csStep is cs.step(name, fn, {retry, timeout}): it calls fn unless the run has the step's result,
// which it records before it resolves with it.
func csStep(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		c := &stepCall{Step: step.Step{Kind: step.KindStep, Name: r.stepName(call.Argument(0), "cs.step")}}
		c.fn, c.ok = goja.AssertFunction(call.Argument(1))
		if !c.ok {
			r.badArgument("cs.step: the second argument must be a function")
		}
		c.most, c.backoff, c.maxBackoff = defaultStepAttempts, defaultBackoff, defaultMaxBackoff
		if options := r.options(call.Argument(2), "cs.step", "retry", "timeout"); options != nil {
			c.timeout = r.duration(options.Get("timeout"), "cs.step: options.timeout", 0)
			if retry := r.options(options.Get("retry"), "cs.step: options.retry", "maxAttempts", "backoffMs", "maxBackoffMs"); retry != nil {
				c.most = r.whole(retry.Get("maxAttempts"), "cs.step: retry.maxAttempts", 1, maxStepAttempts, c.most)
				c.backoff = r.duration(retry.Get("backoffMs"), "cs.step: retry.backoffMs", c.backoff)
				c.maxBackoff = max(c.backoff, r.duration(retry.Get("maxBackoffMs"), "cs.step: retry.maxBackoffMs", c.maxBackoff))
			}
		}
		return r.askStep(c)
	})
}

// csSleep is cs.sleep(duration): a number of milliseconds, or text such as "5m".
func csSleep(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		c := &stepCall{Step: step.Step{Kind: step.KindSleep, Name: "sleep"}, wait: r.duration(call.Argument(0), "cs.sleep: the duration", -1)}
		if c.wait < 0 {
			r.badArgument("cs.sleep: the duration is missing")
		}
		return r.askStep(c)
	})
}

// csWaitForEvent is cs.waitForEvent(name, {timeout}). It resolves with the payload, or with null
// when the timeout is over.
func csWaitForEvent(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		c := &stepCall{Step: step.Step{Kind: step.KindEvent, Name: r.stepName(call.Argument(0), "cs.waitForEvent")}, wait: defaultEventWait, late: []byte("null")}
		if options := r.options(call.Argument(1), "cs.waitForEvent", "timeout"); options != nil {
			c.wait = r.duration(options.Get("timeout"), "cs.waitForEvent: options.timeout", c.wait)
		}
		return r.askStep(c)
	})
}

// csWaitForApproval is cs.waitForApproval({message, timeout, default, name}). It resolves with
// {approved, by, comment, voters}, or with {approved, timedOut} when the timeout is over.
func csWaitForApproval(r *realm, call goja.FunctionCall) goja.Value {
	return r.promised(func() *deferred {
		const name = "cs.waitForApproval"
		c := &stepCall{Step: step.Step{Kind: step.KindApproval, Name: "approval"}, wait: step.MaxWaitMS * time.Millisecond}
		approved := false
		if options := r.options(call.Argument(0), name, "message", "timeout", "default", "name"); options != nil {
			c.Message = r.option(options, "message", name, false)
			if v := options.Get("name"); v != nil && !goja.IsUndefined(v) {
				c.Name = r.stepName(v, name)
			}
			c.wait = r.duration(options.Get("timeout"), name+": options.timeout", c.wait)
			approved = orUndefined(options.Get("default")).ToBoolean()
		}
		if len(c.Message) > maxApprovalMessage {
			r.badArgument(name + ": options.message has at most 1 KiB")
		}
		c.late = []byte(`{"approved":` + strconv.FormatBool(approved) + `,"timedOut":true}`)
		return r.askStep(c)
	})
}

// maxApprovalMessage is the bound of the server on the message of an approval.
const maxApprovalMessage = 1024

// decided returns the result of an approval, of the decision that the server has.
func decided(value []byte) []byte {
	var d step.Decision
	if err := json.Unmarshal(value, &d); err != nil {
		return value
	}
	out, err := json.Marshal(struct {
		Approved bool     `json:"approved"`
		By       string   `json:"by,omitempty"`
		Comment  string   `json:"comment,omitempty"`
		Voters   []string `json:"voters,omitempty"`
	}{d.Approved, d.By, d.Comment, d.Voters})
	if err != nil {
		return value
	}
	return out
}

// stepName takes the name of a step.
func (r *realm) stepName(v goja.Value, function string) string {
	s, ok := v.(goja.String)
	if !ok {
		r.badArgument(function + ": the name must be a string")
	}
	name := s.String()
	if problem := step.CheckName(name); problem != "" {
		r.badArgument(function + ": the name " + problem)
	}
	return name
}

// whole takes a whole number from least to most, and fallback for undefined.
func (r *realm) whole(v goja.Value, what string, least, most, fallback int) int {
	if v == nil || goja.IsUndefined(v) {
		return fallback
	}
	n := v.ToFloat()
	if !goja.IsNumber(v) || n < float64(least) || n > float64(most) || n != float64(int(n)) {
		r.badArgument(what + " must be a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most))
	}
	return int(n)
}

// units are the units of durations as text, in milliseconds.
var units = []struct {
	suffix string
	ms     float64
}{{"ms", 1}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000}, {"d", 86_400_000}}

// duration takes a number of milliseconds or text such as "90s", "1.5h" and "7d", and fallback for
// undefined. It is at most 365 days.
func (r *realm) duration(v goja.Value, what string, fallback time.Duration) time.Duration {
	if v == nil || goja.IsUndefined(v) {
		return fallback
	}
	ms, ok := -1.0, false
	if text, isText := v.(goja.String); isText {
		ms, ok = parseDuration(text.String())
	} else if goja.IsNumber(v) {
		ms, ok = v.ToFloat(), true
	}
	if !ok || !(ms >= 0 && ms <= step.MaxWaitMS) {
		r.badArgument(what + ` must be a number of milliseconds, or text such as "30s", "5m", "2h" or "7d", of at most 365 days`)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// parseDuration returns the milliseconds of a duration as text.
func parseDuration(text string) (ms float64, ok bool) {
	for _, u := range units {
		number, found := cutUnit(text, u.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		return n * u.ms, err == nil
	}
	return 0, false
}

// cutUnit cuts a unit off. A number ends with a digit, so that "ms" is not taken for "s".
func cutUnit(text, unit string) (number string, found bool) {
	at := len(text) - len(unit)
	if at < 1 || text[at:] != unit || text[at-1] < '0' || text[at-1] > '9' {
		return "", false
	}
	return text[:at], true
}
