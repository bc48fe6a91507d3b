package invoker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage/events"
)

// activationEvents returns the recorded events of activations, each as its type without
// "activation.", function, status and reason, sorted.
func (b *bench) activationEvents() (out []string) {
	b.t.Helper()
	page, err := events.New(b.store).Read(b.t.Context(), b.tenant, "", 1000)
	if err != nil {
		b.t.Fatalf("Read: %v", err)
	}
	for _, e := range page.Events {
		if text, ok := strings.CutPrefix(e.Type, "activation."); ok {
			out = append(out, strings.Join(strings.Fields(strings.Join([]string{text, e.Data.Function, e.Data.Status, e.Data.Reason}, " ")), " "))
		}
	}
	slices.Sort(out)
	return out
}

// The setting record.events of a version decides which events its activations have: those of calls
// and those of jobs.
func TestActivationsHaveTheEventsOfTheirVersion(t *testing.T) {
	eachWorking(t, func(b *bench) {
		recording := func(setting string) api.VersionConfig {
			config := asynchronous(2)
			config.Record = &api.Recording{Events: setting}
			return config
		}
		b.publish("silent", `export default () => 1;`, recording(event.RecordOff))
		b.publish("short", `export default () => 1;`, recording(event.RecordAll))
		b.publish("long", `export default async () => { await cs.kv.set("n", 1); };`, recording(event.RecordAll))
		b.publish("failing", `export default () => { throw new Error("no"); };`, recording(event.RecordEnds))
		b.publish("job", `export default () => { throw new Error("no"); };`, recording(event.RecordAll))
		for _, name := range []string{"silent", "short", "long", "failing"} {
			b.invoke(name, "null")
		}
		b.ends(b.enqueue("job", "null"))
		want := []string{
			"ended failing error Exception", "ended job error Exception", "ended long success", "ended short success",
			"started job", "started job", "started long",
		}
		if diff := cmp.Diff(want, b.activationEvents()); diff != "" {
			b.t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
