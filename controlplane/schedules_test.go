package controlplane_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/storage/storagetest"
)

// addSchedule makes the schedule nightly, which fills the queue reports.
func (h *harness) addSchedule(t *testing.T) api.ScheduleStatus {
	t.Helper()
	return ok[api.ScheduleStatus](t, h.call(t, "POST", h.at("N/schedules"),
		`{"name":"nightly","cron":"30 2 * * *","timezone":"Europe/Berlin","queue":{"name":"reports"}}`), 201)
}

func TestSchedulesOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.call(t, "POST", h.at("N/schedules"), `{"name":"minutely","every_seconds":60,"ref":{"function":"hello"},"payload":{"n": 12345678901234567890}}`, "If-None-Match", "*")
	made := ok[api.ScheduleStatus](t, a, 201)
	want := api.Schedule{
		Name: "minutely", EverySeconds: 60, OverlapPolicy: "skip", Catchup: "all", MaxCatchupTicks: 60,
		Ref: &api.JobTarget{Function: "hello", Alias: "prod"}, Payload: []byte(`{"n":12345678901234567890}`), Enabled: true,
		Revision: 1, CreatedAtMS: made.CreatedAtMS, UpdatedAtMS: made.CreatedAtMS,
	}
	if diff := cmp.Diff(want, made.Schedule); diff != "" || a.header.Get("ETag") != `"1"` {
		t.Errorf("(-want +got):\n%s\n%v", diff, a.header)
	}
	if wait := made.NextRunMS - made.CreatedAtMS; wait <= 0 || wait > 60_000 || made.LastRun != nil || made.InFlight == nil {
		t.Errorf("got %s, want a next run within 60 s, no last run and in_flight []", a.body)
	}
	h.addSchedule(t)
	h.call(t, "POST", h.at("N/schedules"), `{"name":"nightly","every_seconds":60,"ref":{"function":"hello"}}`).refused(t, 409, api.CodeScheduleExists)

	first := ok[api.Page[api.ScheduleStatus]](t, h.call(t, "GET", h.at("N/schedules")+"?limit=1", ""), 200)
	second := ok[api.Page[api.ScheduleStatus]](t, h.call(t, "GET", h.at("N/schedules")+"?limit=1&cursor="+*first.NextCursor, ""), 200)
	if len(first.Items) != 1 || len(second.Items) != 1 || first.Items[0].Name != "minutely" || second.Items[0].Name != "nightly" || second.NextCursor != nil {
		t.Errorf("got pages %+v and %+v, want minutely alone on the first, nightly alone on the second, and no third", first, second)
	}

	minutely := h.at("N/schedules/minutely")
	run := ok[map[string]string](t, h.call(t, "POST", minutely+":run", "", "Idempotency-Key", "k"), 200)
	if run["job_id"] == "" || run["activation_id"] != run["job_id"] {
		t.Errorf("got run %v, want a job_id and the same activation_id", run)
	}
	if again := ok[map[string]string](t, h.call(t, "POST", minutely+":run", "", "Idempotency-Key", "k"), 200); again["job_id"] != run["job_id"] {
		t.Errorf("got run %v for a repeat of %v, want the same job_id", again, run)
	}
	h.call(t, "POST", minutely+":run", "").refused(t, 409, api.CodeScheduleBusy)
	if s := ok[api.ScheduleStatus](t, h.call(t, "GET", minutely, ""), 200); s.LastRun == nil || s.LastRun.JobID != run["job_id"] || s.LastRun.State != api.JobPending ||
		len(s.InFlight) != 1 || s.Fired != 1 || s.NextRunMS != made.NextRunMS {
		t.Errorf("got schedule %+v with last run %+v, want the pending job of the run in flight, 1 fired, and next run %d", s, s.LastRun, made.NextRunMS)
	}
	queued := ok[map[string]string](t, h.call(t, "POST", h.at("N/schedules/nightly:run"), ""), 200)
	if _, has := queued["activation_id"]; has || queued["job_id"] == "" {
		t.Errorf("got run %v of a queue's schedule, want a job_id and no activation_id", queued)
	}

	if a := h.call(t, "DELETE", minutely, ""); a.status != 204 {
		t.Errorf("DELETE: got %d %s, want status 204", a.status, a.body)
	}
	h.call(t, "GET", minutely, "").refused(t, 404, api.CodeScheduleNotFound)
	h.call(t, "DELETE", minutely, "").refused(t, 404, api.CodeScheduleNotFound)
	if a := h.call(t, "GET", h.at("T/jobs/"+run["job_id"]), ""); a.status != 200 {
		t.Errorf("its job: %s, want status 200", a.body)
	}
}

func TestScheduleChanges(t *testing.T) {
	t.Parallel()
	h := start(t)
	made := h.addSchedule(t)
	nightly := h.at("N/schedules/nightly")
	change := func(body string) api.ScheduleStatus {
		t.Helper()
		return ok[api.ScheduleStatus](t, h.call(t, "PATCH", nightly, body), 200)
	}
	if s := change(`{}`); s.Revision != 1 {
		t.Errorf("after an empty change: got schedule %+v, want revision 1", s)
	}
	if s := change(`{"payload":[1,2],"overlap_policy":"queue"}`); string(s.Payload) != "[1,2]" || s.QueueLimit != api.DefaultQueueLimit || s.NextRunMS != made.NextRunMS || s.Revision != 2 {
		t.Errorf("got schedule %+v, want payload [1,2], queue limit %d, next run %d and revision 2", s, api.DefaultQueueLimit, made.NextRunMS)
	}
	if s := change(`{"payload":null,"overlap_policy":null,"max_catchup_ticks":5}`); s.Payload != nil || s.OverlapPolicy != "skip" || s.QueueLimit != 0 || s.MaxCatchupTicks != 5 {
		t.Errorf("got schedule %+v, want no payload, overlap policy skip, no queue limit and 5 catch-up ticks", s)
	}
	if s := change(`{"cron":null,"every_seconds":7,"max_catchup_ticks":null}`); s.EverySeconds != 7 || s.Cron != "" || s.Timezone != "" || s.MaxCatchupTicks != 60 || s.NextRunMS == made.NextRunMS {
		t.Errorf("got schedule %+v, want every 7 seconds, no cron and timezone, 60 catch-up ticks, and a next run other than %d", s, made.NextRunMS)
	}
	if s := change(`{"queue":null,"ref":{"function":"hello","version":3}}`); s.Queue != nil || *s.Ref != (api.JobTarget{Function: "hello", Version: 3}) {
		t.Errorf("got schedule %+v, want no queue and version 3 of hello", s)
	}
	if s := change(`{"enabled":false}`); s.Enabled || s.NextRunMS != 0 {
		t.Errorf("got schedule %+v, want it disabled and without a next run", s)
	}
	if s := change(`{"ref":null,"queue":{"name":"others","priority":"high"}}`); s.Ref != nil || s.Queue.Name != "others" || s.Queue.Priority != "high" || s.NextRunMS != 0 {
		t.Errorf("got schedule %+v, want no ref, the queue others with priority high, and no next run", s)
	}
	last := change(`{"enabled":true}`)
	if wait := last.NextRunMS - last.UpdatedAtMS; wait <= 0 || wait > 7000 {
		t.Errorf("got schedule %+v, want a next run within 7 s", last)
	}

	etag := fmt.Sprintf(`"%d"`, last.Revision)
	h.call(t, "PATCH", nightly, `{"enabled":false}`, "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "DELETE", nightly, "", "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	if a := h.call(t, "PATCH", nightly, `{"enabled":false}`, "If-Match", etag); a.status != 200 || a.header.Get("ETag") == etag {
		t.Errorf("PATCH: got %d with headers %v, want 200 and an ETag other than %s", a.status, a.header, etag)
	}
	if a := h.call(t, "DELETE", nightly, "", "If-Match", "*"); a.status != 204 {
		t.Errorf("DELETE: got %d %s, want status 204", a.status, a.body)
	}
}

// TestOneOfManyChangesASchedule races creators, and then changes under one ETag.
func TestOneOfManyChangesASchedule(t *testing.T) {
	t.Parallel()
	h := start(t)
	race := func(call func(i int) answer) (codes map[api.Code]int) {
		answers := make([]answer, 8)
		var done sync.WaitGroup
		for i := range answers {
			done.Go(func() { answers[i] = call(i) })
		}
		done.Wait()
		codes = map[api.Code]int{}
		for _, a := range answers {
			codes[ok[problem](t, a, a.status).Code]++
		}
		return codes
	}
	made := race(func(i int) answer {
		return h.call(t, "POST", h.at("N/schedules"), fmt.Sprintf(`{"name":"nightly","every_seconds":%d,"queue":{"name":"reports"}}`, 60+i))
	})
	if diff := cmp.Diff(map[api.Code]int{"": 1, api.CodeScheduleExists: 7}, made); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	changed := race(func(i int) answer {
		return h.call(t, "PATCH", h.at("N/schedules/nightly"), fmt.Sprintf(`{"every_seconds":%d}`, 100+i), "If-Match", `"1"`)
	})
	if diff := cmp.Diff(map[api.Code]int{"": 1, api.CodePreconditionFailed: 7}, changed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	unguarded := race(func(i int) answer {
		return h.call(t, "PATCH", h.at("N/schedules/nightly"), fmt.Sprintf(`{"every_seconds":%d}`, 200+i))
	})
	if diff := cmp.Diff(map[api.Code]int{"": 8}, unguarded); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ofAnyRevision := race(func(i int) answer {
		return h.call(t, "PATCH", h.at("N/schedules/nightly"), fmt.Sprintf(`{"every_seconds":%d}`, 300+i), "If-Match", "*")
	})
	if diff := cmp.Diff(map[api.Code]int{"": 8}, ofAnyRevision); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := ok[api.ScheduleStatus](t, h.call(t, "GET", h.at("N/schedules/nightly"), ""), 200); s.Revision != 18 {
		t.Errorf("after eighteen writes: %+v, want revision 18", s)
	}
}

func TestBadSchedulesAreRefusedAndChangeNothing(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	h := startOn(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	h.addSchedule(t)
	h.engine.authorize = func(inv *api.Invocation) error {
		if inv.Trigger.Type != api.TriggerSchedule {
			t.Errorf("got authorization with trigger %+v, want type schedule", inv.Trigger)
		}
		if inv.Function == "ghost" {
			return api.Errorf(api.CodeFunctionNotFound, "function %q does not exist", inv.Function)
		}
		if inv.Ref.Alias == "lost" {
			return api.Errorf(api.CodeAliasNotFound, "alias %q does not exist", inv.Ref.Alias)
		}
		return nil
	}
	of := func(rest string) string { return `{"name":"hourly","queue":{"name":"reports"},` + rest + `}` }
	to := func(rest string) string { return `{"name":"hourly","every_seconds":60,` + rest + `}` }
	const create, nightly = "N/schedules", "N/schedules/nightly"
	rows := []struct {
		name, method, path, body string
		status                   int
		code                     api.Code
		field                    string
	}{
		{"no name", "POST", create, `{"every_seconds":60,"queue":{"name":"reports"}}`, 422, api.CodeInvalid, "name"},
		{"a name of no form", "POST", create, `{"name":"No","every_seconds":60,"queue":{"name":"reports"}}`, 400, api.CodeValidationName, "name"},
		{"no namespace's name", "POST", "T/namespaces/P/schedules", to(`"queue":{"name":"reports"}`), 400, api.CodeValidationName, "namespace"},
		{"no body", "POST", create, ``, 400, api.CodeValidationJSON, ""},
		{"not JSON", "POST", create, `{"name":`, 400, api.CodeValidationJSON, ""},
		{"unknown field", "POST", create, of(`"every_seconds":60,"every":1`), 422, api.CodeInvalid, "every"},
		{"unknown field of a target", "POST", create, to(`"ref":{"function":"hello","event":1}`), 422, api.CodeInvalid, "ref.event"},
		{"body over 1 MiB", "POST", create, oversized(api.MaxRequestBytes), 413, api.CodeBodyLimit, ""},

		{"no timing", "POST", create, of(`"enabled":true`), 422, api.CodeInvalid, "every_seconds"},
		{"two timings", "POST", create, of(`"every_seconds":60,"cron":"* * * * *"`), 422, api.CodeInvalid, "cron"},
		{"an interval below a second", "POST", create, of(`"every_seconds":-1`), 422, api.CodeInvalid, "every_seconds"},
		{"an interval of parts", "POST", create, of(`"every_seconds":1.5`), 422, api.CodeInvalid, "every_seconds"},
		{"an interval with an exponent", "POST", create, of(`"every_seconds":1e3`), 422, api.CodeInvalid, ""},
		{"an interval of many digits", "PATCH", nightly, `{"cron":null,"every_seconds":99999999999999999999}`, 422, api.CodeInvalid, ""},
		{"an interval over a day", "POST", create, of(`"every_seconds":86401`), 422, api.CodeInvalid, "every_seconds"},
		{"six fields", "POST", create, of(`"cron":"0 * * * * *"`), 422, api.CodeInvalid, "cron"},
		{"an interval as cron", "POST", create, of(`"cron":"@every 5s"`), 422, api.CodeInvalid, "cron"},
		{"a zone in the cron", "POST", create, of(`"cron":"TZ=UTC 0 0 * * *"`), 422, api.CodeInvalid, "cron"},
		{"a cron of words", "POST", create, of(`"cron":"0 0 L * *"`), 422, api.CodeInvalid, "cron"},
		{"a cron of many digits", "POST", create, of(`"cron":"99999999999999999999 * * * *"`), 422, api.CodeInvalid, "cron"},
		{"a cron that never ticks", "POST", create, of(`"cron":"0 0 30 2 *"`), 422, api.CodeInvalid, "cron"},
		{"a long cron", "POST", create, of(`"cron":"0` + strings.Repeat(",0", 200) + ` * * * *"`), 422, api.CodeInvalid, "cron"},
		{"an unknown zone", "POST", create, of(`"cron":"0 0 * * *","timezone":"Europe/Atlantis"`), 422, api.CodeInvalid, "timezone"},
		{"the machine's zone", "POST", create, of(`"cron":"0 0 * * *","timezone":"Local"`), 422, api.CodeInvalid, "timezone"},
		{"a zone of an interval", "POST", create, of(`"every_seconds":60,"timezone":"UTC"`), 422, api.CodeInvalid, "timezone"},

		{"an unknown policy", "POST", create, of(`"every_seconds":60,"overlap_policy":"wait"`), 422, api.CodeInvalid, "overlap_policy"},
		{"a limit of no queue", "POST", create, of(`"every_seconds":60,"queue_limit":3`), 422, api.CodeInvalid, "queue_limit"},
		{"a limit over the bound", "POST", create, of(`"every_seconds":60,"overlap_policy":"queue","queue_limit":101`), 422, api.CodeInvalid, "queue_limit"},
		{"a negative limit", "POST", create, of(`"every_seconds":60,"overlap_policy":"queue","queue_limit":-1`), 422, api.CodeInvalid, "queue_limit"},
		{"an unknown catch-up", "POST", create, of(`"every_seconds":60,"catchup":"some"`), 422, api.CodeInvalid, "catchup"},
		{"too much catch-up", "POST", create, of(`"every_seconds":60,"max_catchup_ticks":1001`), 422, api.CodeInvalid, "max_catchup_ticks"},
		{"negative catch-up", "POST", create, of(`"every_seconds":60,"max_catchup_ticks":-1`), 422, api.CodeInvalid, "max_catchup_ticks"},
		{"payload over 64 KiB", "POST", create, of(`"every_seconds":60,"payload":"` + strings.Repeat("x", api.MaxSchedulePayload) + `"`), 422, api.CodeInvalid, "payload"},

		{"no target", "POST", create, to(`"enabled":false`), 422, api.CodeInvalid, "ref"},
		{"two targets", "POST", create, to(`"ref":{"function":"hello"},"queue":{"name":"reports"}`), 422, api.CodeInvalid, "queue"},
		{"a function's name", "POST", create, to(`"ref":{"function":"Hello"}`), 422, api.CodeInvalid, "ref.function"},
		{"an alias and a version", "POST", create, to(`"ref":{"function":"hello","alias":"prod","version":1}`), 422, api.CodeInvalid, "ref"},
		{"a negative version", "POST", create, to(`"ref":{"function":"hello","version":-1}`), 422, api.CodeInvalid, "ref"},
		{"no function", "POST", create, to(`"ref":{"function":"ghost"}`), 404, api.CodeFunctionNotFound, "ref"},
		{"no alias", "POST", create, to(`"ref":{"function":"hello","alias":"lost"}`), 404, api.CodeAliasNotFound, "ref"},
		{"a queue of the platform", "POST", create, to(`"queue":{"name":"fn.hello"}`), 422, api.CodeInvalid, "queue.name"},
		{"a queue's name", "POST", create, to(`"queue":{"name":"Q"}`), 422, api.CodeInvalid, "queue.name"},
		{"a unique key", "POST", create, to(`"queue":{"name":"reports","unique_key":"{}"}`), 422, api.CodeInvalid, "queue.unique_key"},
		{"attempts", "POST", create, to(`"queue":{"name":"reports","max_attempts":1001}`), 422, api.CodeInvalid, "queue.max_attempts"},
		{"priority", "POST", create, to(`"queue":{"name":"reports","priority":"urgent"}`), 422, api.CodeInvalid, "queue.priority"},
		{"If-None-Match with a tag", "POST", create, to(`"queue":{"name":"reports"}`), 422, api.CodeInvalid, "If-None-Match"},

		{"change of nothing", "PATCH", "N/schedules/ghost", `{"enabled":false}`, 404, api.CodeScheduleNotFound, ""},
		{"a schedule's name", "PATCH", "N/schedules/G", `{}`, 400, api.CodeValidationName, "schedule"},
		{"a second timing", "PATCH", nightly, `{"every_seconds":60}`, 422, api.CodeInvalid, "cron"},
		{"no timing left", "PATCH", nightly, `{"cron":null}`, 422, api.CodeInvalid, "every_seconds"},
		{"no target left", "PATCH", nightly, `{"queue":null}`, 422, api.CodeInvalid, "ref"},
		{"a second target", "PATCH", nightly, `{"ref":{"function":"hello"}}`, 422, api.CodeInvalid, "queue"},
		{"change to no function", "PATCH", nightly, `{"queue":null,"ref":{"function":"ghost"}}`, 404, api.CodeFunctionNotFound, "ref"},
		{"change of the name", "PATCH", nightly, `{"name":"daily"}`, 422, api.CodeInvalid, "name"},
		{"change of another type", "PATCH", nightly, `{"cron":5}`, 422, api.CodeInvalid, "cron"},
		{"change to a cron that is none", "PATCH", nightly, `{"cron":"x"}`, 422, api.CodeInvalid, "cron"},
		{"delete of nothing", "DELETE", "N/schedules/ghost", ``, 404, api.CodeScheduleNotFound, ""},
		{"run of nothing", "POST", "N/schedules/ghost:run", ``, 404, api.CodeScheduleNotFound, ""},
		{"no such verb", "POST", nightly + ":pause", ``, 405, api.CodeMethodNotAllowed, ""},
		{"cursor", "GET", create + "?cursor=AAAAAAAAAAAx", ``, 400, api.CodeValidationCursor, "cursor"},
	}
	before := h.snapshot(t, client)
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			route, query, has := strings.Cut(tc.path, "?")
			path := h.at(route)
			if has {
				path += "?" + query
			}
			headers := []string{"Content-Type", "application/json"}
			if strings.HasPrefix(tc.name, "If-None-Match") {
				headers = append(headers, "If-None-Match", `"1"`)
			}
			p := h.call(t, tc.method, path, tc.body, headers...).refused(t, tc.status, tc.code)
			if strings.Contains(p.Detail, "json:") || strings.Contains(p.Detail, "strconv") || strings.Contains(p.Detail, " type ") {
				t.Errorf("got detail %q, want none of the words of the decoder", p.Detail)
			}
			if tc.field != "" && (len(p.Errors) == 0 || p.Errors[0].Path != tc.field) {
				t.Errorf("errors %+v, want the first at %q", p.Errors, tc.field)
			}
		})
	}
	if diff := cmp.Diff(before, h.snapshot(t, client)); diff != "" {
		t.Errorf("the store changed: (-want +got):\n%s", diff)
	}
}

// TestSchedulesAreWhoeversChangedThem checks the rights that a target needs, and for
// whom its ticks are invoked.
func TestSchedulesAreWhoeversChangedThem(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	k := startKeyed(t, store)
	k.publish(t, "payments", "hello", `{"authz":{"invoke_schedule_roles":["role:clock"]}}`)
	k.publish(t, "others", "hello", "{}")
	path := strings.TrimSuffix(k.fn(""), "/functions/hello") + "/schedules"
	roles := func(roles ...string) func(*api.Key) { return func(key *api.Key) { key.Roles = roles } }
	clock, record := k.key(t, "", roles("developer", "role:clock"))
	developer, _ := k.key(t, "developer")
	operator, other := k.key(t, "operator", roles("operator", "role:clock"))

	const hello = `{"name":"nightly","every_seconds":60,"ref":{"function":"hello"}}`
	k.as(t, developer, "POST", path, hello).refused(t, 403, api.CodeAuthzDenied)
	ok[api.ScheduleStatus](t, k.as(t, clock, "POST", path, hello), 201)
	owner := func() string {
		t.Helper()
		loaded, err := schedules.New(store).Load(t.Context(), storage.SchedulePath{Tenant: k.tenant, Namespace: "payments", Name: "nightly"})
		if err != nil || loaded.Meta.Access != api.AccessGranted {
			t.Fatalf("Load: got %v %v, want no error and access granted", loaded, err)
		}
		return loaded.Meta.Principal.Sub
	}
	if owner() != record.ID {
		t.Errorf("got owner %s, want %s", owner(), record.ID)
	}
	// Who may not run it may stop it, and do nothing else.
	nightly := path + "/nightly"
	k.as(t, developer, "PATCH", nightly, `{"payload":1}`).refused(t, 403, api.CodeAuthzDenied)
	k.as(t, developer, "PATCH", nightly, `{"enabled":false,"payload":1}`).refused(t, 403, api.CodeAuthzDenied)
	ok[api.ScheduleStatus](t, k.as(t, developer, "PATCH", nightly, `{"enabled":false}`), 200)
	k.as(t, developer, "PATCH", nightly, `{"enabled":true}`).refused(t, 403, api.CodeAuthzDenied)
	if owner() != record.ID {
		t.Error("a caller that only disabled it became its owner")
	}
	k.as(t, developer, "POST", nightly+":run", "").refused(t, 403, api.CodeAuthzDenied)
	ok[map[string]string](t, k.as(t, clock, "POST", nightly+":run", ""), 200)
	ok[api.ScheduleStatus](t, k.as(t, operator, "PATCH", nightly, `{"enabled":true}`), 200)
	if owner() != other.ID {
		t.Error("the caller that changed it did not become its owner")
	}
	// A key that is limited to another namespace is refused before the schedule is read.
	limited, _ := k.key(t, "admin", inNamespace("others"))
	k.as(t, limited, "POST", path, hello).refused(t, 403, api.CodeAuthzDenied)
	for _, action := range []string{"cs:schedule:create", "cs:schedule:update"} {
		events := ok[api.Page[api.AuditEvent]](t, k.as(t, operator, "GET", "/v1/tenants/"+k.tenant+"/audit", ""), 200)
		found := false
		for _, e := range events.Items {
			found = found || e.Action == action
		}
		if !found {
			t.Errorf("audit: got no event %s, want one", action)
		}
	}
}
