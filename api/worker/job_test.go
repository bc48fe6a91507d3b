package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/worker"
)

func ms(n int64) *int64 { return &n }

// What a handler returns, and what it says to its job, is how that is settled.
func TestOutcomes(t *testing.T) {
	no := errors.New("no")
	for name, test := range map[string]struct {
		do   func(j *worker.Job) error
		ack  *api.JobAck
		fail *api.JobFail
	}{
		"done":     {do: func(*worker.Job) error { return nil }, ack: &api.JobAck{}},
		"return":   {do: func(j *worker.Job) error { return j.Return(map[string]int{"n": 1}) }, ack: &api.JobAck{Result: []byte(`{"n":1}`)}},
		"continue": {do: func(j *worker.Job) error { j.Continue(); return j.Keep(7) }, ack: &api.JobAck{Continue: true, Checkpoint: []byte(`7`)}},
		"hold": {
			do:  func(j *worker.Job) error { j.Hold("look"); return errors.Join(j.Keep(8), j.Return(1)) },
			ack: &api.JobAck{Hold: "look", Checkpoint: []byte(`8`)},
		},
		"error": {do: func(*worker.Job) error { return no }, fail: &api.JobFail{Error: "no"}},
		"fatal": {do: func(*worker.Job) error { return worker.Fatal(no) }, fail: &api.JobFail{Error: "no", Fatal: true}},
		"wrapped": {
			do:   func(*worker.Job) error { return errors.Join(worker.Fatal(no)) },
			fail: &api.JobFail{Error: "no", Fatal: true},
		},
		"payload": {
			do:   func(j *worker.Job) error { return j.Decode(new(string)) },
			fail: &api.JobFail{Error: "the payload of job 0: json: cannot unmarshal number into Go value of type string", Fatal: true},
		},
		"provider": {
			do:   func(*worker.Job) error { return worker.ProviderFailed(no, agent.FailureRateLimit, time.Hour) },
			fail: &api.JobFail{Error: "no"}, // the job has none
		},
		"later": {do: func(*worker.Job) error { return worker.RetryAfter(no, time.Minute) }, fail: &api.JobFail{Error: "no", RetryAfterMS: ms(60_000)}},
		"never": {do: func(*worker.Job) error { return worker.RetryAfter(no, 1<<62) }, fail: &api.JobFail{Error: "no", RetryAfterMS: ms(api.MaxDelayMS)}},
		"past":  {do: func(*worker.Job) error { return worker.RetryAfter(no, -time.Hour) }, fail: &api.JobFail{Error: "no", RetryAfterMS: ms(0)}},
		"snooze": {
			do:   func(*worker.Job) error { return worker.Snooze(2 * time.Second) },
			fail: &api.JobFail{Error: "snoozed for 2s", SnoozeMS: ms(2000)},
		},
		"panic":     {do: func(*worker.Job) error { panic("oh") }, fail: &api.JobFail{Error: "panic: oh"}},
		"too large": {do: func(j *worker.Job) error { return j.Return(strings.Repeat("x", api.MaxJobResultBytes)) }, fail: &api.JobFail{Error: "worker: result: 1048578 bytes, over 1048576"}},
		"no JSON":   {do: func(j *worker.Job) error { return j.Keep(make(chan int)) }, fail: &api.JobFail{Error: "worker: checkpoint: json: unsupported type: chan int"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSource("1")
				begun := 0
				w := run(t, s, worker.Config{}, func(_ context.Context, j *worker.Job) error {
					begun++
					if begun > 1 { // a snoozed one is there again
						return nil
					}
					return test.do(j)
				})
				time.Sleep(time.Second)
				w.end(t)
				if test.ack != nil {
					test.ack.ID, test.ack.LeaseEpoch = "0", 1
					if diff := cmp.Diff([]api.JobAck{*test.ack}, s.acks); diff != "" || len(s.fails) > 0 {
						t.Errorf("ack difference (-want +got):\n%s\nand fails %+v, want none", diff, s.fails)
					}
					return
				}
				if len(s.fails) != 1 {
					t.Fatalf("got fails %+v and acks %+v, want 1 fail", s.fails, s.acks)
				}
				test.fail.ID, test.fail.LeaseEpoch = "0", 1
				stack := s.fails[0].Stack
				s.fails[0].Stack = ""
				if diff := cmp.Diff(*test.fail, s.fails[0]); diff != "" {
					t.Errorf("difference (-want +got):\n%s", diff)
				}
				if (name == "panic") != strings.Contains(stack, "job_test.go") {
					t.Errorf("got stack %q, want one with this file after a panic only", stack)
				}
			})
		})
	}
}

// A checkpoint is kept also where the job fails before a heartbeat carried it.
func TestCheckpointOutlivesAFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource("1")
		s.jobs["0"].MaxAttempts = 3
		var seen []string
		w := run(t, s, worker.Config{Lease: 3 * time.Second}, func(_ context.Context, j *worker.Job) error {
			seen = append(seen, string(j.Checkpoint))
			switch j.Attempt {
			case 1:
				if err := j.Keep("first"); err != nil {
					return err
				}
				time.Sleep(1500 * time.Millisecond) // a heartbeat has carried it
				return errors.Join(j.Keep("second"), errors.New("no"))
			case 2:
				return errors.New("nothing new")
			}
			return nil
		})
		time.Sleep(5 * time.Second)
		w.end(t)
		if diff := cmp.Diff([]string{"", `"second"`, `"second"`}, seen); diff != "" {
			t.Errorf("difference (-want +got):\n%s", diff)
		}
		carried := 0
		for _, h := range s.beats {
			if h.Checkpoint != nil {
				carried++
			}
		}
		if carried != 2 {
			t.Errorf("got %d heartbeats with a checkpoint, want 2", carried)
		}
	})
}

// An attempt whose result the queue refuses has failed.
func TestRefusedAckFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource("1")
		s.refuse = api.CodeJobResult
		w := run(t, s, worker.Config{}, func(_ context.Context, j *worker.Job) error { return j.Return(1) })
		time.Sleep(time.Second)
		if got := s.failed(); len(got) != 1 || got[0].Error != "the ack was refused: "+string(api.CodeJobResult)+": no" {
			t.Errorf("got fails %+v, want one with the error of the refused ack", got)
		}
		w.end(t)
	})
}

// An ack that comes too late is told to OnError, and nothing is made of it.
func TestLateAckIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSource("1")
		var told []string
		w := run(t, s, worker.Config{OnError: func(err error) { told = append(told, err.Error()) }}, func(context.Context, *worker.Job) error {
			s.with(func() { s.jobs["0"].LeaseEpoch++ })
			return nil
		})
		time.Sleep(time.Second)
		w.end(t)
		if len(told) != 1 || !strings.Contains(told[0], string(api.CodeJobLeaseLost)) || len(s.fails) > 0 {
			t.Errorf("got reports %q and fails %+v, want one report of CodeJobLeaseLost and no fail", told, s.fails)
		}
	})
}
