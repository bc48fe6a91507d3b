package platformtest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// What TestSchedulesSurvive does.
const (
	schedulesFor = 60 * time.Second
	schedules    = 50 // of one second, beside the one that skips
)

// Of three replicas one is killed every few seconds for a minute. Every tick of every
// schedule has one activation, and the one that skips never had two runs at the same time and
// goes on although replicas that ran it died.
//
// Not parallel: the other tests hold answers to a time.
func TestSchedulesSurvive(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SOUS_CHAOS_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("strconv.ParseUint: %v", err)
		}
	}
	t.Logf("SOUS_CHAOS_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	config := platformtest.Config{Store: storagetest.Redis(t).URL}
	var replicas [3]*platformtest.Server
	for i := range replicas {
		replicas[i] = config.Serve(t)
	}
	replicas[0].Publish(t, "tick", "", map[string]string{"function.js": "export default () => null"})
	replicas[0].Publish(t, "slow", `{"timeout_ms": 20000}`, map[string]string{
		"function.js": "export default async () => new Promise((done) => setTimeout(done, 1500))",
	})
	names := make([]string, schedules)
	for i := range names {
		names[i] = fmt.Sprintf("tick-%d", i)
		schedule(t, replicas[0], names[i], "tick", api.OverlapParallel)
	}
	schedule(t, replicas[0], "skips", "slow", api.OverlapSkip)
	kills := 0
	for begin := time.Now(); time.Since(begin) < schedulesFor; kills++ {
		time.Sleep(time.Duration(1000+random.IntN(2500)) * time.Millisecond) // until the next crash
		i := random.IntN(len(replicas))
		if err := replicas[i].Kill(); err != nil {
			t.Fatalf("Kill: %v", err)
		}
		again := config
		again.Listen = strings.TrimPrefix(replicas[i].URL, "http://")
		replicas[i] = again.Serve(t)
	}
	disabled := make(map[string]api.ScheduleStatus, len(names))
	for _, name := range append(names, "skips") {
		disabled[name] = disable(t, replicas[0], name)
	}
	platformtest.Eventually(t, 60*time.Second, "all activations have ended", func() error {
		for _, function := range []string{"tick", "slow"} {
			for _, a := range listActivations(t, replicas[0], function) {
				if !a.Status.Terminal() {
					return fmt.Errorf("%s is %s", a.ActivationID, a.Status)
				}
			}
		}
		return nil
	})
	byName := map[string][]api.Activation{}
	for _, a := range append(listActivations(t, replicas[0], "tick"), listActivations(t, replicas[0], "slow")...) {
		var source api.ScheduleSource
		if err := json.Unmarshal(a.Trigger.Source, &source); err != nil || a.Trigger.Type != api.TriggerSchedule {
			t.Fatalf("trigger %+v: %v", a.Trigger, err)
		}
		byName[source.Schedule] = append(byName[source.Schedule], a)
	}
	total := 0
	for _, name := range names {
		total += len(byName[name])
		if err := everyTickOnce(byName[name], disabled[name]); err != nil {
			t.Errorf("schedule %s: %v", name, err)
		}
	}
	if err := neverTwiceAtOnce(byName["skips"], disabled["skips"]); err != nil {
		t.Errorf("the schedule that skips: %v", err)
	}
	t.Logf("%d kills, %d ticks fired, %d runs of the one that skips (%d skipped)",
		kills, total, len(byName["skips"]), disabled["skips"].Skipped)
}

func schedule(t *testing.T, s *platformtest.Server, name, function, overlap string) {
	t.Helper()
	_, err := s.API(t).Namespace(platformtest.Namespace).CreateSchedule(t.Context(), api.NewSchedule{
		Name: name, EverySeconds: 1, OverlapPolicy: overlap, Ref: &api.JobTarget{Function: function, Alias: "prod"},
	})
	if err != nil {
		t.Fatalf("CreateSchedule: %v", err)
	}
}

func disable(t *testing.T, s *platformtest.Server, name string) api.ScheduleStatus {
	t.Helper()
	off := false
	got, err := s.API(t).Namespace(platformtest.Namespace).Schedule(name).Update(t.Context(), client.ScheduleChange{Enabled: &off})
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
	return got
}

func listActivations(t *testing.T, s *platformtest.Server, function string) (all []api.Activation) {
	t.Helper()
	filter := client.ActivationFilter{Namespace: platformtest.Namespace, Function: function}
	of := s.API(t)
	list := func(ctx context.Context, o client.PageOptions) (api.Page[api.Activation], error) {
		return of.Activations(ctx, filter, o)
	}
	for a, err := range client.All(t.Context(), list, client.PageOptions{Limit: 500}) {
		if err != nil {
			t.Fatalf("list the activations: %v", err)
		}
		all = append(all, a)
	}
	return all
}

// everyTickOnce holds a schedule's activations to its grid: one for each second from the
// first to the last.
func everyTickOnce(fired []api.Activation, s api.ScheduleStatus) error {
	ticks := make([]int64, len(fired))
	for i, a := range fired {
		var source api.ScheduleSource
		if err := json.Unmarshal(a.Trigger.Source, &source); err != nil {
			return err
		}
		ticks[i] = source.TickMS
	}
	slices.Sort(ticks)
	if len(ticks) < int(schedulesFor/time.Second)-5 {
		return fmt.Errorf("%d ticks in %s", len(ticks), schedulesFor)
	}
	if ticks[0] > s.CreatedAtMS+1000 {
		return fmt.Errorf("its first tick is %d ms after its creation", ticks[0]-s.CreatedAtMS)
	}
	for i, tick := range ticks[1:] {
		if tick != ticks[i]+1000 {
			return fmt.Errorf("behind the tick at %d comes one after %d ms", ticks[i], tick-ticks[i])
		}
	}
	if s.Missed != 0 || s.Skipped != 0 || s.Fired != int64(len(ticks)) {
		return fmt.Errorf("%d ticks, and it says %d fired, %d missed, %d skipped", len(ticks), s.Fired, s.Missed, s.Skipped)
	}
	return nil
}

// neverTwiceAtOnce: each run begins when the one before it, with its retries, has ended.
func neverTwiceAtOnce(fired []api.Activation, s api.ScheduleStatus) error {
	slices.SortFunc(fired, func(a, b api.Activation) int { return cmp.Compare(a.StartMS, b.StartMS) })
	for i := range fired[1:] {
		if fired[i+1].StartMS < fired[i].EndMS {
			return fmt.Errorf("one begins at %d, the one before it ends at %d", fired[i+1].StartMS, fired[i].EndMS)
		}
	}
	// A run takes 1.5 s, and up to 5 s more where its replica dies.
	if len(fired) < 8 {
		return errors.New("it came to a stop")
	}
	if s.Skipped == 0 || s.Fired != int64(len(fired)) {
		return fmt.Errorf("%d runs, and it says %d fired, %d skipped", len(fired), s.Fired, s.Skipped)
	}
	return nil
}
