package cadenceworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/cadence/activity"
	"go.uber.org/cadence/client"
	"go.uber.org/zap"
)

// pulse takes heartbeats as a client.
type pulse struct {
	client.Client
	answer func(ctx context.Context) error // default: none

	mu     sync.Mutex
	latest string
	spin   atomic.Int64
}

func (p *pulse) RecordActivityHeartbeat(ctx context.Context, _ []byte, details ...any) error {
	if p.answer != nil {
		return p.answer(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(details) > 0 {
		p.latest = fmt.Sprintf("%s", details[0])
	}
	return nil
}

// beating is a task whose function runs, with heartbeats that p takes.
func beating(t *testing.T, p *pulse, timeout time.Duration) *task {
	t.Helper()
	s := &Supervisor{running: map[taskKey]*task{}}
	s.metrics = newSupervisorMetrics(s)
	s.life, s.end = context.WithCancel(context.Background())
	made := &task{
		w: &activityWorker{b: &binding{s: s}, client: p}, info: activity.Info{HeartbeatTimeout: timeout}, logger: zap.NewNop(),
	}
	made.ctx, made.stop = context.WithCancelCause(s.life)
	made.beats = newBeats(made)
	made.beats.start()
	made.beats.started()
	return made
}

func (t *task) add(test *testing.T, details string) {
	test.Helper()
	if err := t.beats.add(json.RawMessage(details)); err != nil {
		test.Error(err)
	}
}

// A function that reports counts as silent if its reports do not reach the server:
// Cadence then hands its task to another worker.
func TestUnheardTaskIsSilent(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(context.Context) error{
		"refused": func(context.Context) error { return errors.New("unavailable") },
		"hanging": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				task := beating(t, &pulse{answer: answer}, 2*time.Second)
				defer task.w.b.s.end()
				began := time.Now()
				task.add(t, "1")
				select {
				case <-task.ctx.Done():
				case <-time.After(time.Minute):
				}
				if took, cause := time.Since(began), context.Cause(task.ctx); took > 3100*time.Millisecond || !errors.Is(cause, errSilent) {
					t.Errorf("got cause %v after %s, want errSilent within 3.1s", cause, took)
				}
				task.beats.end()
			})
		})
	}
}

// A heartbeat that hangs does not keep back the answer of a function that has ended.
func TestHangingHeartbeatEndsWithItsTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		task := beating(t, &pulse{answer: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}, 0)
		defer task.w.b.s.end()
		task.add(t, "1")
		synctest.Wait()
		began := time.Now()
		task.beats.end()
		if took := time.Since(began); took > endTimeout {
			t.Errorf("the end took %s, want at most %s", took, endTimeout)
		}
	})
}

// Details that are reported while the sender is about to send the previous ones are sent, too.
func TestLatestHeartbeatIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{}
		task := beating(t, p, time.Minute)
		defer task.w.b.s.end()
		defer task.beats.end()
		for i := range 20_000 {
			task.add(t, "0")
			synctest.Wait()
			task.add(t, "1")
			synctest.Wait()
			time.Sleep(beatEvery) // the sender wakes now, too
			for range i % 500 {
				p.spin.Add(1)
			}
			want := fmt.Sprint(i + 2)
			task.add(t, want)
			time.Sleep(2 * beatEvery)
			synctest.Wait()
			p.mu.Lock()
			got := p.latest
			p.mu.Unlock()
			if got != want {
				t.Fatalf("the server: got progress %s, want %s", got, want)
			}
		}
	})
}
