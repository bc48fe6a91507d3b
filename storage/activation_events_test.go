package storage_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/storagetest"
)

// activationsAreRecorded checks that no activation that records events began or ended without one.
func activationsAreRecorded(t *testing.T, name string, f *fixture) {
	t.Helper()
	page := f.firstPage(t) // ends lost ones
	log := f.recorded(t)
	for _, a := range page {
		stored, err := storage.Decode[activations.Record](f.Client().Get(t.Context(), f.Keys().ActivationMeta(a.Tenant, a.ActivationID)).Val())
		if err != nil {
			t.Fatalf("%s: Decode: %v", name, err)
		}
		want := event.ActivationStarted
		if stored.Status.Terminal() {
			want = event.ActivationEnded
		}
		recorded := slices.ContainsFunc(log, func(e string) bool { return strings.HasPrefix(e, want+" activations/"+a.ActivationID) })
		if stored.Events != "" && !recorded {
			t.Errorf("%s: a %s activation after the interruption: got the events %v, want one of %s", name, stored.Status, log, want)
		}
	}
}

// Each way in which an activation begins and ends is an event, if its version records it.
func TestActivationsRecordEvents(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		for setting, want := range map[string][]string{
			"":     nil,
			"ends": {"ended success", "ended success job", "ended cancelled", "ended error Lost"},
			"all": {
				"ended success", "started job", "ended success job", "started", "ended cancelled", "started", "ended error Lost",
			},
		} {
			f := newFixture(t, s)
			liveActivations(t, f, setting)
			page, err := events.New(s).Read(t.Context(), f.fn.Tenant, "", 1000)
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			var got []string
			for _, e := range page.Events {
				if text, ok := strings.CutPrefix(e.Type, "activation."); ok {
					got = append(got, strings.Join(strings.Fields(text+" "+e.Data.Status+" "+e.Data.Reason+" "+e.Data.JobID), " "))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("setting %q: events (-want +got):\n%s", setting, diff)
			}
		}
	})
}

// liveActivations lets four activations with the setting begin and end: a short call, a job with a
// repeated write, one that is cancelled, and one whose process is gone.
func liveActivations(t *testing.T, f *fixture, setting string) {
	t.Helper()
	ctx := t.Context()
	won := func(call string, won bool, _ *activations.Record, err error) {
		t.Helper()
		if err != nil || !won {
			t.Fatalf("%s: got won %t and error %v, want true", call, won, err)
		}
	}
	short := f.running()
	short.Events = setting
	ended, current, err := f.activations.RecordEnded(ctx, succeeded(short, f.NowMS(), `1`), nil)
	won("RecordEnded", ended, current, err)

	job := f.queued()
	job.JobID, job.Events, job.Status, job.Attempt, job.LeaseEpoch = "job", setting, api.StatusRunning, 1, 1
	for range 2 {
		ended, current, err = f.activations.Begin(ctx, job)
		won("Begin", ended, current, err)
	}
	done := succeeded(job, f.NowMS(), `1`)
	for range 2 {
		ended, current, err = f.activations.Finish(ctx, done)
		won("Finish", ended, current, err)
	}

	cancelled := f.running()
	cancelled.Events = setting
	f.start(t, cancelled)
	if _, err := f.activations.Cancel(ctx, cancelled.Tenant, cancelled.ActivationID, f.NowMS()); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	lost := f.lost()
	lost.Events = setting
	f.start(t, lost)
	if _, err := f.activations.Get(ctx, lost.Tenant, lost.ActivationID); err != nil {
		t.Fatalf("Get: %v", err)
	}
}
