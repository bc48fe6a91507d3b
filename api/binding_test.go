package api

import (
	"fmt"
	"strings"
	"testing"
)

func validBinding() WorkerBinding {
	b := WorkerBinding{
		Name: "payments-activities", Domain: "payments", Tasklist: "payments-activities",
		ActivityMap: map[string]JobTarget{"SousInvokeActivity": {Function: "reconcile"}},
	}
	b.Normalize()
	return b
}

func TestWorkerBindingDefaults(t *testing.T) {
	t.Parallel()
	b := validBinding()
	target := b.ActivityMap["SousInvokeActivity"]
	if b.WorkerID != b.Name || b.Pollers.Activity != 8 || b.Limits.MaxInflightTasks != 256 || target.Alias != "prod" {
		t.Errorf("got binding %+v, want the name as worker id, 8 pollers, 256 tasks and the alias prod", b)
	}
	if err := b.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	pinned := WorkerBinding{ActivityMap: map[string]JobTarget{"A": {Function: "f", Version: 3}}}
	pinned.Normalize()
	if pinned.ActivityMap["A"] != (JobTarget{Function: "f", Version: 3}) {
		t.Errorf("Normalize: got %+v, want version 3 of f without an alias", pinned)
	}
}

func TestWorkerBindingBounds(t *testing.T) {
	t.Parallel()
	many := func(n int) map[string]JobTarget {
		m := map[string]JobTarget{}
		for i := range n {
			m[fmt.Sprint("Activity", i)] = JobTarget{Function: "reconcile", Alias: "prod"}
		}
		return m
	}
	one := func(kind string, target JobTarget) map[string]JobTarget { return map[string]JobTarget{kind: target} }
	good := JobTarget{Function: "reconcile", Alias: "prod"}
	for _, c := range []struct {
		name   string
		change func(*WorkerBinding)
		code   Code
	}{
		{"as many types as may be", func(b *WorkerBinding) { b.ActivityMap = many(64) }, ""},
		{"a type too many", func(b *WorkerBinding) { b.ActivityMap = many(65) }, CodeInvalid},
		{"no type", func(b *WorkerBinding) { b.ActivityMap = nil }, CodeInvalid},
		{"a Go name", func(b *WorkerBinding) { b.ActivityMap = one("main.Pay-fm", good) }, ""},
		{"an empty type", func(b *WorkerBinding) { b.ActivityMap = one("", good) }, CodeInvalid},
		{"a long type", func(b *WorkerBinding) { b.ActivityMap = one(strings.Repeat("x", 256), good) }, CodeInvalid},
		{"a type with a line end", func(b *WorkerBinding) { b.ActivityMap = one("a\nb", good) }, CodeInvalid},
		{"no function", func(b *WorkerBinding) { b.ActivityMap = one("A", JobTarget{Alias: "prod"}) }, CodeInvalid},
		{"alias and version", func(b *WorkerBinding) { b.ActivityMap = one("A", JobTarget{"reconcile", "prod", 3}) }, CodeInvalid},
		{"most pollers", func(b *WorkerBinding) { b.Pollers.Activity = 64 }, ""},
		{"a poller too many", func(b *WorkerBinding) { b.Pollers.Activity = 65 }, CodeInvalid},
		{"negative pollers", func(b *WorkerBinding) { b.Pollers.Activity = -1 }, CodeInvalid},
		{"most tasks", func(b *WorkerBinding) { b.Limits.MaxInflightTasks = 10_000 }, ""},
		{"a task too many", func(b *WorkerBinding) { b.Limits.MaxInflightTasks = 10_001 }, CodeInvalid},
		{"no domain", func(b *WorkerBinding) { b.Domain = "" }, CodeInvalid},
		{"a domain of blanks", func(b *WorkerBinding) { b.Domain = " payments" }, CodeInvalid},
		{"a long tasklist", func(b *WorkerBinding) { b.Tasklist = strings.Repeat("x", 256) }, CodeInvalid},
		{"broken text", func(b *WorkerBinding) { b.Tasklist = "\xff" }, CodeInvalid},
		{"a worker id with a blank", func(b *WorkerBinding) { b.WorkerID = "a b" }, CodeValidationName},
		{"a name that is none", func(b *WorkerBinding) { b.Name = "Payments" }, CodeValidationName},
	} {
		b := validBinding()
		c.change(&b)
		if code := ErrorCode(b.Validate()); code != c.code {
			t.Errorf("%s: %q, want %q", c.name, code, c.code)
		}
	}
}

// A task's id is its token's: another attempt, another id.
func TestTaskActivationID(t *testing.T) {
	t.Parallel()
	first, again, other := TaskActivationID([]byte("a")), TaskActivationID([]byte("a")), TaskActivationID([]byte("b"))
	if first != again || first == other || ValidateActivationID(first) != nil {
		t.Errorf("TaskActivationID: got %v and %v for one token and %v for another, want equal ids for one token only, each a UUID", first, again, other)
	}
}
