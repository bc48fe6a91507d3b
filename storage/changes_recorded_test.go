package storage_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/storagetest"
)

// recorded returns the events of the tenant's log, each as its type, subject, versions and actor.
func (f *fixture) recorded(t *testing.T) (out []string) {
	t.Helper()
	page, err := events.New(f.Store).Read(t.Context(), f.fn.Tenant, "", 1000)
	if err != nil || page.Gap {
		t.Fatalf("Read: got gap %t and error %v, want neither", page != nil && page.Gap, err)
	}
	for _, e := range page.Events {
		text := e.Type + " " + e.Subject
		if e.Data.Version > 0 || e.Data.Previous > 0 {
			text += fmt.Sprintf(" %d<%d", e.Data.Version, e.Data.Previous)
		}
		if e.Actor != "" {
			text += " by " + e.Actor
		}
		out = append(out, text)
	}
	return out
}

// changesAreRecorded checks that the interrupted operation left no change of a function without
// its event.
func changesAreRecorded(t *testing.T, name string, f *fixture) {
	t.Helper()
	count := map[string]int{}
	for _, e := range f.recorded(t) {
		count[e]++
	}
	at := "functions/" + f.fn.Namespace + "/"
	want := func(changed bool, event string, times int) {
		t.Helper()
		if changed && count[event] < times {
			t.Errorf("%s: events after the interruption: got %v, want %d of %s", name, count, times, event)
		}
	}
	_, err := f.functions.Get(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name)
	want(name == "delete" && err != nil, "function.deleted "+at+f.fn.Name, 1)
	want(name == "revive" && err == nil, "function.created "+at+f.fn.Name, 2)
	_, err = f.functions.Get(t.Context(), f.fn.Tenant, f.fn.Namespace, "another")
	want(err == nil, "function.created "+at+"another", 1)
	latest, err := f.versions.Latest(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name)
	want(err == nil && latest == 1, "version.published "+at+f.fn.Name+"/versions/1 1<0", 1)
	_, err = f.aliases.Get(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, "prod")
	want(err == nil, "alias.set "+at+f.fn.Name+"/aliases/prod 1<0", 1)
	want(name == "delete alias" && err != nil, "alias.deleted "+at+f.fn.Name+"/aliases/prod 1<0", 1)
}

// Changes of functions are events with their actor. Repeats, and calls that are refused, are none.
func TestFunctionsRecordEvents(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		ctx := event.WithActor(t.Context(), "key_1")
		tn, ns, name := f.fn.Tenant, f.fn.Namespace, f.fn.Name
		must := func(call string, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: got %v, want no error", call, err)
			}
		}
		publish := func(sha, alias string) {
			t.Helper()
			_, _, err := f.publish(f.draft(t, sha), sha, alias)
			must("publish", err)
		}
		_, err := f.functions.Create(t.Context(), f.fn) // again
		must("Create", err)
		publish("aa", "prod")
		publish("aa", "prod") // again
		publish("bb", "")
		set := func(version int64) {
			t.Helper()
			_, err := f.aliases.Set(ctx, tn, ns, name, "prod", version, nil, 5+version)
			must("Set", err)
		}
		set(2)
		set(2) // again
		if _, err := f.aliases.Set(ctx, tn, ns, name, "prod", 1, new(int64(1)), 9); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("Set: got %v, want %s", err, api.CodePreconditionFailed)
		}
		must("Delete", f.aliases.Delete(ctx, tn, ns, name, "prod", nil))
		publish("bb", "prod")
		must("Delete", f.functions.Delete(ctx, tn, ns, name, 7))
		_, err = f.functions.Create(ctx, f.fn)
		must("Create", err)
		at := "functions/" + ns + "/" + name
		want := []string{
			"function.created " + at,
			"version.published " + at + "/versions/1 1<0",
			"alias.set " + at + "/aliases/prod 1<0",
			"version.published " + at + "/versions/2 2<0",
			"alias.set " + at + "/aliases/prod 2<1 by key_1",
			"alias.deleted " + at + "/aliases/prod 2<0 by key_1",
			"alias.set " + at + "/aliases/prod 2<0",
			"function.deleted " + at + " by key_1",
			"function.created " + at + " by key_1",
		}
		if diff := cmp.Diff(want, f.recorded(t)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if ttl := f.Client().PTTL(t.Context(), f.JobKeys(tn).Events()).Val(); ttl <= 0 {
			t.Errorf("time-to-live of the log: got %s, want one", ttl)
		}
	})
}
