package examples

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/cmd/sous/soustest"
)

// TestScheduled runs the handler scheduled by schedules: what its event holds, and noRetry.
func TestScheduled(t *testing.T) {
	t.Parallel()
	server := soustest.Start(t)
	const source = `export default {
		scheduled(event, env, ctx) {
			const { type, cron, scheduledTime, schedule } = event;
			console.log({ type, cron, late: Date.now() - scheduledTime, schedule, job: ctx.attempt });
			if (event.event.final) event.noRetry();
			if (event.event.fail) throw new Error("failed");
		},
	}`
	deploy(t, server, function(t, "nightly", source), "--config", `{"retry":{"max_attempts":2,"base_delay_ms":1,"backoff":"fixed"}}`)
	c := tenant(t, server)
	for name, tt := range map[string]struct {
		schedule api.NewSchedule
		state    api.JobState
		attempts int
		reason   string
		cron     string
	}{
		"by-cron":   {api.NewSchedule{Cron: "0 0 1 1 *"}, api.JobCompleted, 1, "", "0 0 1 1 *"},
		"interval":  {api.NewSchedule{EverySeconds: 86400}, api.JobCompleted, 1, "", ""},
		"ticking":   {api.NewSchedule{EverySeconds: 1}, api.JobCompleted, 1, "", ""},
		"retried":   {api.NewSchedule{EverySeconds: 86400, Payload: []byte(`{"fail":true}`)}, api.JobDead, 2, api.DeadAttempts, ""},
		"final":     {api.NewSchedule{EverySeconds: 86400, Payload: []byte(`{"fail":true,"final":true}`)}, api.JobDead, 1, api.DeadFatal, ""},
		"succeeded": {api.NewSchedule{EverySeconds: 86400, Payload: []byte(`{"final":true}`)}, api.JobCompleted, 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tt.schedule
			s.Name, s.Ref = filepath.Base(t.Name()), &api.JobTarget{Function: "nightly"}
			if _, err := c.Namespace("default").CreateSchedule(t.Context(), s); err != nil {
				t.Fatalf("CreateSchedule(%+v): %v", s, err)
			}
			id := fire(t, c, s)
			job := ended(t, c, id)
			if job.State != tt.state || job.Attempt != tt.attempts || job.DeadReason != tt.reason {
				t.Errorf("job: got state %s after %d attempts, reason %q; want %s after %d, reason %q", job.State, job.Attempt, job.DeadReason, tt.state, tt.attempts, tt.reason)
			}
			scheduledEvent(t, c, id, s.Name, tt.cron)
		})
	}
}

// fire returns the job of a run of the schedule: of its tick if it ticks each second, else of
// a run by hand.
func fire(t *testing.T, c *client.Tenant, s api.NewSchedule) (id string) {
	t.Helper()
	schedule := c.Namespace("default").Schedule(s.Name)
	if s.EverySeconds != 1 {
		run, err := schedule.Run(t.Context(), "")
		if err != nil {
			t.Fatalf("Run(%s): %v", s.Name, err)
		}
		return run.JobID
	}
	platformtest.Eventually(t, 20*time.Second, "the schedule fires", func() error {
		status, err := schedule.Get(t.Context())
		if err != nil {
			return err
		}
		if status.LastRun == nil {
			return fmt.Errorf("schedule %s has not fired", s.Name)
		}
		id = status.LastRun.JobID
		return nil
	})
	return id
}

// ended waits until the job has completed or is dead, and returns it.
func ended(t *testing.T, c *client.Tenant, id string) (job api.Job) {
	t.Helper()
	platformtest.Eventually(t, 20*time.Second, "the job ends", func() (err error) {
		job, err = c.Job(t.Context(), id)
		if err == nil && job.State != api.JobCompleted && job.State != api.JobDead {
			err = fmt.Errorf("job %s: got state %s, want completed or dead", id, job.State)
		}
		return err
	})
	return job
}

// scheduledEvent checks what the handler logged of its event at each attempt.
func scheduledEvent(t *testing.T, c *client.Tenant, id, name, cron string) {
	t.Helper()
	lines := 0
	for line, err := range c.LogLines(t.Context(), id) {
		if err != nil {
			t.Fatalf("LogLines: %v", err)
		}
		if line.Level == "error" { // how the attempt ended
			continue
		}
		lines++
		var got struct {
			Type, Cron, Schedule string
			Late                 int64
		}
		if err := json.Unmarshal(line.Message, &got); err != nil {
			t.Fatalf("log line %s: got error %v, want an object", line.Message, err)
		}
		if got.Type != "scheduled" || got.Cron != cron || got.Schedule != name || got.Late < 0 || got.Late > 60_000 {
			t.Errorf("event: got %+v, want type scheduled, cron %q, schedule %q and a time of the last minute", got, cron, name)
		}
	}
	if lines == 0 {
		t.Errorf("activation %s: got no log lines, want one for each attempt", id)
	}
}
