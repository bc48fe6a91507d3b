package invoker_test

import (
	"context"
	"testing"

	"github.com/codesous/sous/api"
)

// The lists of a version name the roles that may run it: Authorize checks them, and Invoke
// checks them again.
func TestAccess(t *testing.T) {
	each(t, func(b *bench) {
		const source = `export default (event, ctx) => ctx.principal.roles.join();`
		for name, lists := range map[string]*api.Authz{
			"open":      nil,
			"empty":     {},
			"public":    {InvokeHTTPRoles: []string{"*"}, InvokeScheduleRoles: []string{"role:cron"}},
			"billing":   {InvokeHTTPRoles: []string{"role:billing", "role:audit"}},
			"scheduled": {InvokeScheduleRoles: []string{"role:cron"}, InvokeCadenceRoles: []string{"role:flow"}},
			"crons":     {InvokeScheduleRoles: []string{"*"}, InvokeCadenceRoles: []string{"*"}},
		} {
			config := defaults()
			config.Authz = lists
			b.publish(name, source, config)
		}
		const (
			none    = api.Code("")
			needs   = api.CodeAuthnRequired
			refused = api.CodeAuthzDenied
		)
		for _, tc := range []struct {
			function, trigger string
			access            api.Access
			roles             []string
			want              api.Code
		}{
			{"open", api.TriggerHTTP, api.AccessPublic, nil, needs},
			{"empty", api.TriggerHTTP, api.AccessPublic, nil, needs},
			{"billing", api.TriggerHTTP, api.AccessPublic, []string{"role:billing"}, needs},
			{"public", api.TriggerHTTP, api.AccessPublic, nil, none},
			{"public", api.TriggerAPI, api.AccessPublic, nil, needs},
			{"public", api.TriggerSchedule, api.AccessPublic, nil, needs},
			{"crons", api.TriggerSchedule, api.AccessPublic, nil, needs},
			{"crons", api.TriggerHTTP, api.AccessPublic, nil, needs},
			{"open", api.TriggerQueue, api.AccessPublic, nil, needs},

			{"open", api.TriggerHTTP, api.AccessGranted, nil, none},
			{"empty", api.TriggerAPI, api.AccessGranted, nil, none},
			{"public", api.TriggerAPI, api.AccessGranted, nil, none},
			{"billing", api.TriggerHTTP, api.AccessGranted, []string{"admin", "role:audit"}, none},
			{"billing", api.TriggerAPI, api.AccessGranted, []string{"role:billing"}, none},
			{"billing", api.TriggerHTTP, api.AccessGranted, []string{"admin"}, refused},
			{"billing", api.TriggerAPI, api.AccessGranted, []string{"role:bill", "*"}, refused},
			{"billing", api.TriggerSchedule, api.AccessGranted, nil, none},
			{"open", api.TriggerQueue, api.AccessGranted, nil, none},
			{"public", api.TriggerQueue, api.AccessGranted, nil, none},
			{"billing", api.TriggerQueue, api.AccessGranted, nil, refused},
			{"billing", api.TriggerQueue, api.AccessGranted, []string{"role:audit"}, none},
			{"scheduled", api.TriggerHTTP, api.AccessGranted, nil, none},
			{"scheduled", api.TriggerSchedule, api.AccessGranted, []string{"role:flow"}, refused},
			{"scheduled", api.TriggerSchedule, api.AccessGranted, []string{"role:cron"}, none},
			{"scheduled", api.TriggerCadence, api.AccessGranted, []string{"role:cron"}, refused},
			{"scheduled", api.TriggerCadence, api.AccessGranted, []string{"role:flow"}, none},
			{"crons", api.TriggerSchedule, api.AccessGranted, nil, none},

			{"billing", api.TriggerHTTP, api.AccessUnrestricted, nil, none},
			{"scheduled", api.TriggerSchedule, api.AccessUnrestricted, nil, none},
			{"open", api.TriggerHTTP, api.Access(17), []string{"admin"}, refused},
			{"open", api.TriggerHTTP, api.Access(-1), []string{"admin"}, refused},

			{"missing", api.TriggerHTTP, api.AccessPublic, nil, api.CodeFunctionNotFound},
			{"missing", api.TriggerHTTP, api.AccessGranted, nil, api.CodeFunctionNotFound},
		} {
			inv := b.invocation(tc.function, `1`)
			inv.Trigger.Type, inv.Access, inv.Principal.Roles = tc.trigger, tc.access, tc.roles
			if err := b.engine.Authorize(b.t.Context(), &inv); api.ErrorCode(err) != tc.want {
				b.t.Errorf("Authorize of %+v: got error %v, want code %q", tc, err, tc.want)
			}
			if _, err := b.engine.Invoke(b.t.Context(), inv); api.ErrorCode(err) != tc.want {
				b.t.Errorf("Invoke of %+v: got error %v, want code %q", tc, err, tc.want)
			}
		}
	})
}

func TestAuthorizeRefusesWhatIsNoRef(t *testing.T) {
	each(t, func(b *bench) {
		inv := b.invocation("hello", `1`)
		inv.Ref = api.Ref{}
		if err := b.engine.Authorize(b.t.Context(), &inv); api.ErrorCode(err) != api.CodeInvalid {
			b.t.Errorf("Authorize: got error %v, want code %s", err, api.CodeInvalid)
		}
	})
}

// A stored answer is protected like a new one: a caller without the right gets neither.
func TestReplayIsForThoseWhoMayInvoke(t *testing.T) {
	each(t, func(b *bench) {
		config := defaults()
		config.Authz = &api.Authz{InvokeHTTPRoles: []string{"role:billing"}}
		b.publish("bill", `export default () => "secret";`, config)
		invoke := func(access api.Access, roles ...string) (*api.Outcome, error) {
			inv := b.invocation("bill", `1`)
			inv.IdempotencyKey, inv.Access, inv.Principal.Roles = "k", access, roles
			return b.engine.Invoke(context.WithoutCancel(b.t.Context()), inv)
		}
		if _, err := invoke(api.AccessGranted, "role:billing"); err != nil {
			b.t.Fatalf("invoke: %v", err)
		}
		if out, err := invoke(api.AccessGranted, "role:billing"); err != nil || !out.Replayed {
			b.t.Fatalf("invoke again = %+v, %v, want a replay", out, err)
		}
		if out, err := invoke(api.AccessGranted, "admin"); api.ErrorCode(err) != api.CodeAuthzDenied {
			b.t.Errorf("invoke with another role = %v, %v, want code %s", out, err, api.CodeAuthzDenied)
		}
		if out, err := invoke(api.AccessPublic, "role:billing"); api.ErrorCode(err) != api.CodeAuthnRequired {
			b.t.Errorf("invoke without a key = %+v, %v, want code %s", out, err, api.CodeAuthnRequired)
		}
		if out, err := invoke(api.AccessUnrestricted); err != nil || !out.Replayed {
			b.t.Errorf("invoke by the platform = %v, %v, want a replay", out, err)
		}
	})
}
