package platformtest_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestIdleServerIsQuiet: ten thousand queues that have served and have no work
// cost a server of all roles at most ten commands of the store a second.
func TestIdleServerIsQuiet(t *testing.T) {
	t.Parallel()
	const queues, over = 10_000, 10 * time.Second
	server := storagetest.Redis(t)
	servedQueues(t, server.URL, queues)
	platformtest.Config{Store: server.URL, Args: []string{"--auth", "off"}}.Serve(t)
	options, err := goredis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("ParseURL: %v", err)
	}
	client := goredis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	commands := func() int {
		text, err := client.Info(t.Context(), "stats").Result()
		if err != nil {
			t.Fatalf("Result: %v", err)
		}
		_, rest, _ := strings.Cut(text, "total_commands_processed:")
		line, _, _ := strings.Cut(rest, "\r\n")
		n, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("strconv.Atoi: %v", err)
		}
		return n
	}
	// What a server does when it starts is not idleness: its sweeper goes once over
	// everything, at its full pace.
	var rates []float64
	platformtest.Eventually(t, 4*time.Minute, "the server is quiet", func() error {
		before, begin := commands(), time.Now()
		for time.Since(begin) < over {
			select {
			case <-t.Context().Done():
				return t.Context().Err()
			case <-time.After(over - time.Since(begin)):
			}
		}
		rate := float64(commands()-before-1) / time.Since(begin).Seconds()
		rates = append(rates, rate)
		if rate > 10 {
			return fmt.Errorf("%.1f commands a second", rate)
		}
		return nil
	})
	t.Logf("commands a second: %.1f", rates)
}

// servedQueues makes queues, each with a job that was done, and all looked after.
func servedQueues(t *testing.T, url string, queues int) {
	t.Helper()
	store := storagetest.Open(t, storage.Config{URL: url, ScriptPrelude: "--\n"})
	b, err := queue.New(t.Context(), store, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(b.Close)
	var work errgroup.Group
	work.SetLimit(32)
	for i := range queues {
		work.Go(func() error {
			tenant, name := fmt.Sprintf("t_idle%04d", i%100), fmt.Sprintf("queue%d", i)
			_, err := b.Enqueue(t.Context(), queue.Enqueue{Tenant: tenant, Namespace: "default", Queue: name, Jobs: make([]api.NewJob, 1)})
			if err != nil {
				return err
			}
			got, err := b.Fetch(t.Context(), queue.Fetch{Tenant: tenant, Namespace: "default", Queues: []string{name}, WorkerID: "w"})
			if err != nil || len(got) != 1 {
				return errors.Join(err, fmt.Errorf("fetched %d", len(got)))
			}
			_, err = b.Ack(t.Context(), tenant, []api.JobAck{{ID: got[0].ID, LeaseEpoch: got[0].LeaseEpoch}})
			return err
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatalf("Wait: %v", err)
	}
	// Their leases' ends are looked after, as half a minute later.
	ticker, err := scheduler.NewTicker(store, b, nil, zap.NewNop())
	if err != nil {
		t.Fatalf("NewTicker: %v", err)
	}
	loop := scheduler.NewLoop(store, b, ticker, zap.NewNop())
	for later := store.NowMS() + api.DefaultLeaseMS + 1000; ; {
		counts, err := loop.RunOnce(t.Context(), later)
		if err != nil {
			t.Fatalf("RunOnce: %v", err)
		}
		if counts.Queues == 0 {
			return
		}
	}
}
