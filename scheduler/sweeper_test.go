package scheduler_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// fill makes functions with some activations each, all of which began an hour
// ago and say running.
func fill(t *testing.T, s *storage.Store, tenant string, functions, activations int, now time.Time) (ids []string) {
	t.Helper()
	began := now.Add(-time.Hour).UnixMilli()
	for f := range functions {
		name := fmt.Sprintf("fn-%03d", f)
		_, err := storage.NewFunctions(s).Create(t.Context(), api.Function{
			Tenant: tenant, Namespace: "default", Name: name, Runtime: api.RuntimeJS, CreatedAtMS: began,
		})
		if err != nil {
			t.Fatal(err)
		}
		for n := range activations {
			id := uuid.NewString()
			_, _, err := storage.NewActivations(s).Start(t.Context(), &storage.StoredActivation{Activation: api.Activation{
				ActivationID: id, Tenant: tenant, Namespace: "default", Function: name, Status: api.StatusRunning,
				StartMS: began + int64(n), DeadlineMS: began + 3000, Attempt: 1,
			}})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// backends are stores of the test's own: a sweep counts what it finds anywhere.
func backends(t *testing.T, test func(t *testing.T, s *storage.Store)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())}))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	})
}

func TestSweeperEndsLostActivations(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, s *storage.Store) {
		now, tenant := time.Now(), storagetest.Tenant(t)
		ids := fill(t, s, tenant, 5, 20, now)
		sweeper, err := scheduler.NewSweeper(s, scheduler.SweeperConfig{Reads: 30, Lap: time.Second}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		lost, steps := 0, 0
		for ; lost < len(ids) && steps < 50; steps++ {
			counts, err := sweeper.RunOnce(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			if counts.Read > 30 {
				t.Errorf("a step read %d records, its bound is 30", counts.Read)
			}
			lost += counts.Lost
			if counts.Functions == 0 {
				now = now.Add(time.Second) // between laps
			}
		}
		if lost != len(ids) {
			t.Errorf("%d of %d lost activations were ended in %d steps", lost, len(ids), steps)
		}
		for _, id := range ids {
			a, err := storage.NewActivations(s).Get(t.Context(), tenant, id)
			if err != nil || a.Status != api.StatusError || a.Error.Type != api.ErrLost {
				t.Fatalf("%s: %+v %v", id, a, err)
			}
		}
	})
}

// A record that cannot be read keeps the sweeper from no other function.
func TestSweeperPassesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	now, tenant := time.Now(), storagetest.Tenant(t)
	ids := fill(t, s, tenant, 3, 1, now)
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "SET cs:act:%s:%s:meta {\r\n", tenant, ids[0]); err != nil {
		t.Fatal(err)
	}
	if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || answer != "+OK\r\n" {
		t.Fatal(answer, err)
	}
	sweeper, err := scheduler.NewSweeper(s, scheduler.SweeperConfig{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	counts, err := sweeper.RunOnce(t.Context(), now)
	if err == nil || counts.Lost != 2 || counts.Functions != 3 {
		t.Errorf("%+v %v, want an error and what the other two functions lost", counts, err)
	}
}

// A lap that is over is not begun again before its time, and goes slowly where the
// one before found nothing: a small store stays quiet.
func TestSweeperRestsBetweenLaps(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, s *storage.Store) {
		now := time.Now()
		fill(t, s, storagetest.Tenant(t), 3, 0, now)
		sweeper, err := scheduler.NewSweeper(s, scheduler.SweeperConfig{Lap: 5 * time.Second}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		visited := func(at time.Time) int {
			counts, err := sweeper.RunOnce(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			return counts.Functions
		}
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 3}, {time.Second, 0}, {4999 * time.Millisecond, 0}, {5 * time.Second, 1}, {6 * time.Second, 0}, {7 * time.Second, 1}, {9 * time.Second, 1}, {11 * time.Second, 0}} {
			if got := visited(now.Add(step.after)); got != step.want {
				t.Errorf("after %s: %d functions visited, want %d", step.after, got, step.want)
			}
		}
	})
}

func TestSweeperRefusesBadSettings(t *testing.T) {
	t.Parallel()
	for _, cfg := range []scheduler.SweeperConfig{{Interval: -1}, {Reads: -1}, {IdleInterval: -1}, {Lap: -1}} {
		if _, err := scheduler.NewSweeper(nil, cfg, zap.NewNop()); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// Sweepers that start and stop at once, and an outage, leave nothing behind.
func TestSweeperStartsAndStops(t *testing.T) {
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	fill(t, s, storagetest.Tenant(t), 5, 5, time.Now())
	quiet := goleak.IgnoreCurrent()
	for round := range 20 {
		if round == 10 {
			server.Kill()
		}
		ctx, stop := context.WithCancel(t.Context())
		sweeper, err := scheduler.NewSweeper(s, scheduler.SweeperConfig{Interval: time.Millisecond, Reads: 3, Lap: time.Millisecond}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			sweeper.Run(ctx)
			close(done)
		}()
		time.AfterFunc(time.Duration(round)*time.Millisecond, stop)
		<-done
	}
	goleak.VerifyNone(t, quiet)
}
