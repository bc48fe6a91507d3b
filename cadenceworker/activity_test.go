package cadenceworker_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
)

func TestActivityIsAFunction(t *testing.T) {
	b := newBench(t, options{})
	b.publish("echo", `export default (event, ctx) => ({ event, trigger: ctx.trigger, attempt: ctx.attempt, id: ctx.activation_id, left: ctx.remainingMs() });`)
	b.bind(b.binding("echo"))
	run := b.begin(plan{Activity: "echo", Input: `{"amount":12}`, ActivityID: "pay", Timeout: 7 * time.Second})
	out := b.wait(run)
	if out.Kind != "" {
		t.Fatalf("workflow: got %+v, want success", out)
	}
	var got struct {
		Event struct {
			Type    string            `json:"type"`
			Cadence api.CadenceSource `json:"cadence"`
			Input   struct {
				JSON struct{ Amount int }
				Raw  string `json:"raw_base64"`
			} `json:"input"`
		} `json:"event"`
		Trigger api.Trigger `json:"trigger"`
		Attempt int         `json:"attempt"`
		ID      string      `json:"id"`
		Left    int         `json:"left"`
	}
	if err := json.Unmarshal([]byte(out.Results[0]), &got); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	want := api.CadenceSource{
		Domain: b.domain, Tasklist: tasklist, WorkflowID: run.GetID(), RunID: run.GetRunID(), ActivityID: "pay", ActivityType: "echo",
	}
	var source api.CadenceSource
	if err := json.Unmarshal(got.Trigger.Source, &source); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	if got.Event.Type != "cadence.activity" || got.Event.Cadence != want || source != want || got.Trigger.Type != api.TriggerCadence {
		t.Errorf("%+v, source %+v, want %+v", got, source, want)
	}
	if got.Event.Input.JSON.Amount != 12 || got.Event.Input.Raw != "eyJhbW91bnQiOjEyfQ==" || got.Attempt != 1 || got.Left > 7000 {
		t.Errorf(`got %+v, want input {"amount":12} in both forms, attempt 1 and at most 7000 ms left`, got)
	}
	stored := b.activations("echo")
	if len(stored) != 1 || stored[0].ActivationID != got.ID || stored[0].Status != api.StatusSuccess || stored[0].Trigger.Type != api.TriggerCadence {
		t.Errorf("got activations %+v, want one, %s, with status success and trigger cadence", stored, got.ID)
	}
	b.awaitStatus("one completed", func(c api.BindingCounts) bool {
		return c.State == api.BindingRunning && c.Taken == 1 && c.Completed == 1 && c.InFlight == 0 && c.LastPollMS > 0
	})
}

func TestInputsAndResults(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default (event) => {
		switch (event.input.json?.give ?? atob(event.input.raw_base64)) {
		case "object": return { a: [1] };
		case "text": return "plain";
		case "nothing": return;
		case "response": return { statusCode: 200, headers: {}, body: JSON.stringify({ ok: true }) };
		case "text body": return { statusCode: 200, body: "not json" };
		case "bytes": return { statusCode: 200, body: btoa("\xff\x00a"), isBase64Encoded: true };
		case "": return "no input";
		case "1\n2": return "two inputs";
		}
		return event.input;
	};`)
	b.bind(b.binding("fun"))
	for input, want := range map[string]string{
		`{"give":"object"}`:    `{"a":[1]}`,
		`{"give":"text"}`:      `"plain"`,
		`{"give":"nothing"}`:   ``,
		`{"give":"response"}`:  `{"ok":true}`,
		`{"give":"text body"}`: `not json`,
		`{"give":"bytes"}`:     "\xff\x00a",
		``:                     `"no input"`,
		"1\n2":                 `"two inputs"`,
		`{"give":"other"}`:     `{"json":{"give":"other"},"raw_base64":"eyJnaXZlIjoib3RoZXIifQ=="}`,
	} {
		// A workflow's own result is JSON: bytes that are not are replaced there.
		clean, _ := json.Marshal(want)
		if err := json.Unmarshal(clean, &want); err != nil {
			t.Fatalf("json.Unmarshal: %v", err)
		}
		if out := b.do(plan{Activity: "fun", Input: input}); len(out.Results) != 1 || out.Results[0] != want {
			t.Errorf("%q: %+v, want %q", input, out, want)
		}
	}
}

func TestFailuresHaveReasons(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default async (event) => {
		switch (event.input.json) {
		case "throw": throw new Error("plain");
		case "code": throw Object.assign(new Error("no money"), { code: "NoMoney" });
		case "reserved": throw Object.assign(new Error("x"), { code: "cadenceInternal:cadenceInternal:Panic" });
		case "denied": return await cs.kv.get("a");
		case "memory": { const a = []; for (;;) a.push(new Array(1000).fill(7)); }
		case "never": return new Promise(() => {});
		}
	};`)
	b.publish("slow", `export default () => new Promise(r => setTimeout(r, 10000));`, func(c *api.VersionConfig) { c.TimeoutMS = 300 })
	b.publish("roles", `export default () => 1;`, func(c *api.VersionConfig) { c.Authz = &api.Authz{InvokeCadenceRoles: []string{"payments"}} })
	bound := b.binding("fun", "slow", "roles", "absent")
	bound.Access = api.AccessGranted
	b.bind(bound)
	for _, c := range []struct{ activity, input, reason, message string }{
		{"fun", `"throw"`, "CS_RUNTIME_EXCEPTION", "plain"},
		{"fun", `"code"`, "NoMoney", "no money"},
		{"fun", `"reserved"`, "Panic", "x"},
		{"fun", `"denied"`, "CS_RUNTIME_CAPABILITY_DENIED", "declare capabilities"},
		{"fun", `"memory"`, "CS_RUNTIME_MEMORY_LIMIT", "memory"},
		{"fun", `"never"`, "CS_RUNTIME_EXCEPTION", "never settle"},
		{"slow", `1`, "CS_RUNTIME_TIMEOUT", "deadline"},
		{"roles", `1`, "CS_AUTHZ_DENIED", "other roles"},
		{"absent", `1`, "CS_FUNCTION_NOT_FOUND", `"absent" does not exist`},
	} {
		// A policy that names the reason keeps it from being tried again.
		out := b.do(plan{Activity: c.activity, Input: c.input, Attempts: 5, NonRetriable: []string{c.reason}})
		var d struct {
			Message      string `json:"message"`
			ActivationID string `json:"activation_id"`
		}
		_ = json.Unmarshal(out.Details, &d)
		if out.Kind != "custom" || out.Reason != c.reason || !strings.Contains(d.Message, c.message) {
			t.Errorf(`activity %s with input %s: got %+v with details %s, want a custom error with reason %q and message %q`, c.activity, c.input, out, out.Details, c.reason, c.message)
		}
		if ran := c.activity == "fun" || c.activity == "slow"; ran == (d.ActivationID == "") {
			t.Errorf("activity %s with input %s: got activation id %q in the details, want one: %t", c.activity, c.input, d.ActivationID, ran)
		}
	}
	if n := len(b.activations("fun")); n != 6 {
		t.Errorf("got %d activations, want 6", n)
	}
	b.awaitStatus("the missing function is shown", func(c api.BindingCounts) bool {
		return c.State == api.BindingRunning && strings.Contains(c.Reason, `function "absent" cannot be run: CS_FUNCTION_NOT_FOUND`) && c.Failed == 9
	})
}

func TestThirdAttemptSucceeds(t *testing.T) {
	b := newBench(t, options{})
	b.publish("flaky", `export default (event, ctx) => {
		if (event.cadence.attempt < 2) throw new Error("not yet");
		return [event.cadence.attempt, ctx.attempt];
	};`)
	b.bind(b.binding("flaky"))
	if out := b.do(plan{Activity: "flaky", Attempts: 5}); len(out.Results) != 1 || out.Results[0] != "[2,3]" {
		t.Errorf("flaky activity: got %+v, want the one result [2,3] of its third attempt", out)
	}
	if n := len(b.activations("flaky")); n != 3 {
		t.Errorf("got %d activations, want 3, one for each attempt", n)
	}
}

func TestActivityTimesOut(t *testing.T) {
	b := newBench(t, options{})
	b.publish("slow", `export default () => new Promise(r => setTimeout(r, 15000));`)
	b.bind(b.binding("slow"))
	began := time.Now()
	out := b.do(plan{Activity: "slow", Timeout: time.Second})
	// Either Cadence or the function's own, clamped deadline ends the activity first.
	if out.Reason != "START_TO_CLOSE" && out.Reason != string(api.CodeRuntimeTimeout) {
		t.Errorf("slow activity: got %+v, want a timeout by Cadence or by the function's deadline", out)
	}
	eventually(t, "the sandbox is stopped", func() error { return ended(b.activations("slow"), api.StatusTimeout) })
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the end of the sandbox took %s, want at most 10s", took)
	}
}

func TestActivityIDUsedTwice(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default (event, ctx) => ctx.activation_id;`)
	b.bind(b.binding("fun"))
	out := b.do(plan{Activity: "fun", ActivityID: "same", Times: 2})
	if len(out.Results) != 2 || out.Results[0] == out.Results[1] || len(b.activations("fun")) != 2 {
		t.Errorf("two activities of one id: got %+v and %d activations, want 2 different results and 2 activations", out, len(b.activations("fun")))
	}
}

func TestResultSizes(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default (event) => "x".repeat(event.input.json);`)
	b.bind(b.binding("fun"))
	const most = api.MaxActivityResultBytes - 2 // with its quotes
	for _, c := range []struct {
		size   string
		reason string
	}{{size: "1048574"}, {size: "1048575", reason: string(api.CodeRuntimeResultTooLarge)}, {size: "7000000", reason: string(api.CodeRuntimeResultTooLarge)}} {
		out := b.do(plan{Activity: "fun", Input: c.size})
		if out.Reason != c.reason || c.reason == "" && (len(out.Results) != 1 || len(out.Results[0]) != most+2) {
			t.Errorf("result of %s: got reason %q with details %.300s, want reason %q", c.size, out.Reason, out.Details, c.reason)
		}
	}
}

func TestFunctionDeletedWhileBound(t *testing.T) {
	b := newBench(t, options{})
	b.publish("fun", `export default () => 1;`)
	b.bind(b.binding("fun"))
	if out := b.do(plan{Activity: "fun"}); out.Kind != "" {
		t.Fatalf("activity before the function was deleted: got %+v, want success", out)
	}
	if err := deleteFunction(b, "fun"); err != nil {
		t.Fatalf("deleteFunction: %v", err)
	}
	out := b.do(plan{Activity: "fun"})
	if out.Reason != string(api.CodeFunctionNotFound) || !strings.Contains(string(out.Details), "does not exist") {
		t.Errorf(`activity of a missing function: got %+v with details %s, want reason %s and a message with "does not exist"`, out, out.Details, api.CodeFunctionNotFound)
	}
	b.awaitStatus("the status says so", func(c api.BindingCounts) bool {
		return c.State == api.BindingRunning && strings.Contains(c.Reason, "CS_FUNCTION_NOT_FOUND")
	})
}
