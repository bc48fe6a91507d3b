package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
)

// The schedules of the benchmark. Each ticks once in scheduleEvery seconds, at a phase that
// follows from its name, so that 100 of them are due each second.
const (
	scheduleTenants = 1000
	schedulesEach   = 100
	scheduleEvery   = scheduleTenants * schedulesEach / 100 // seconds: 100 are due each second
	scheduleWatch   = 60 * time.Second
)

// scheduleBench measures the processor time of the ticker and its lag over scheduleWatch, with
// 100,000 schedules of which 100 are due each second. The scheduler runs alone in its process:
// the jobs of its ticks wait in the queues, because no replica with the role invoker runs.
func scheduleBench(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o, "--roles", "api")
	if err != nil {
		return nil, err
	}
	defer b.close()
	err = inParallel(ctx, 4, scheduleTenants, func(ctx context.Context, n int) error {
		return publishFor(ctx, b.sous, scheduleTenant(n), "hello", helloSource, "{}")
	})
	if err != nil {
		return nil, err
	}
	if err := fillSchedules(ctx, b.store); err != nil {
		return nil, err
	}
	ticker, err := startSous(ctx, o, b.store, "--roles", "scheduler", "--admin-listen", adminAddr)
	if err != nil {
		return nil, err
	}
	defer ticker.stop()
	if err := sleep.For(ctx, 10*time.Second); err != nil { // ticks that became due meanwhile are caught up
		return nil, err
	}
	// Counters are read twice, and the rows are differences.
	before, err := lookAtTicker(ctx, ticker, b.store)
	if err != nil {
		return nil, err
	}
	profiled := startProfile(ctx, o, "schedules")
	if err := sleep.For(ctx, scheduleWatch); err != nil {
		return nil, err
	}
	profiled()
	after, err := lookAtTicker(ctx, ticker, b.store)
	if err != nil {
		return nil, err
	}
	took := after.at.Sub(before.at)
	fired, late := after.fired-before.fired, after.late-before.late
	cpu := (after.cpu - before.cpu).Seconds() / took.Seconds()
	return []row{
		{name: "ticks fired", value: fmt.Sprintf("%.1f/s of %d schedules over %d tenants", fired/took.Seconds(), scheduleTenants*schedulesEach, scheduleTenants)},
		{"processor time of the scheduler's process", fmt.Sprintf("%.1f%% of a core", 100*cpu), "< 5%", cpu < 0.05},
		{name: "processor time of the store", value: fmt.Sprintf("%.1f%% of a core", 100*(after.storeCPU-before.storeCPU).Seconds()/took.Seconds())},
		{"ticks fired more than 1.5 s late", fmt.Sprintf("%.0f of %.0f", late, fired), "none", late == 0 && fired > 0.9*100*took.Seconds()},
		{name: "lag, mean", value: fmt.Sprintf("%.0f ms", 1000*(after.lag-before.lag)/fired)},
	}, nil
}

func scheduleTenant(n int) string { return fmt.Sprintf("t_bench%05d", n) }

// tickerFigures are counters at one moment: of the scheduler's process, of the store's, and of
// the metric sous_schedule_lag_seconds.
type tickerFigures struct {
	at               time.Time
	cpu, storeCPU    time.Duration
	fired, late, lag float64 // ticks; those later than 1.5 s; the sum of all, in seconds
}

// lookAtTicker reads the counters. Its figures are those since the start of the processes.
func lookAtTicker(ctx context.Context, ticker, store *process) (f tickerFigures, err error) {
	f.at = time.Now()
	f.cpu, err = ticker.processorTime()
	if err != nil {
		return f, err
	}
	f.storeCPU, err = store.processorTime()
	if err != nil {
		return f, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+adminAddr+"/metrics", nil)
	if err != nil {
		return f, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return f, err
	}
	if resp.StatusCode != http.StatusOK {
		return f, errors.Join(fmt.Errorf("GET %s: %s", req.URL, resp.Status), resp.Body.Close())
	}
	in := bufio.NewScanner(resp.Body)
	inTime := 0.0
	for in.Scan() {
		name, text, _ := strings.Cut(in.Text(), " ")
		value, _ := strconv.ParseFloat(text, 64) // other lines have no number
		switch name {
		case "sous_schedule_lag_seconds_count":
			f.fired = value
		case "sous_schedule_lag_seconds_sum":
			f.lag = value
		case `sous_schedule_lag_seconds_bucket{le="1.5"}`:
			inTime = value
		}
	}
	f.late = f.fired - inTime
	return f, errors.Join(in.Err(), resp.Body.Close())
}

// processorTime returns the processor time that the process has used, from /proc/PID/stat, in
// steps of 10 ms.
func (p *process) processorTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	const ticksPerSecond, user, system = 100, 11, 12 // indexes of utime and stime after the name
	_, fields, _ := strings.Cut(string(stat), ") ")
	words := strings.Fields(fields)
	if len(words) <= system {
		return 0, errors.New("the process's figures cannot be read")
	}
	var sum int64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticksPerSecond, nil
}

// fillSchedules stores the schedules through the repository: half of them run a function, half
// add a job to a queue. It is faster than the API, which would check a hundred thousand times
// that the caller may use the target.
func fillSchedules(ctx context.Context, store *process) error {
	s, err := storage.Open(ctx, storage.Config{URL: "redis://" + store.addr})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // all has been written
	records, now := schedules.New(s), s.NowMS()
	return inParallel(ctx, 64, scheduleTenants*schedulesEach, func(ctx context.Context, n int) error {
		schedule := api.Schedule{
			Name: fmt.Sprintf("every-%03d", n%schedulesEach), EverySeconds: scheduleEvery, OverlapPolicy: api.OverlapSkip,
			Catchup: api.CatchupAll, MaxCatchupTicks: api.DefaultMaxCatchupTicks, Payload: []byte(`{}`), Enabled: true,
		}
		if n%2 == 0 {
			schedule.Ref = &api.JobTarget{Function: "hello", Alias: "prod"}
		} else {
			schedule.Queue = &api.ScheduleQueue{Name: "work"}
		}
		schedule.Revision, schedule.CreatedAtMS, schedule.UpdatedAtMS = 1, now, now
		path := storage.SchedulePath{Tenant: scheduleTenant(n / schedulesEach), Namespace: namespace, Name: schedule.Name}
		next, err := scheduler.NextTicks(path.Tenant, path.Namespace, &schedule, s.NowMS(), 1)
		if err != nil {
			return err
		}
		return records.Put(ctx, schedules.Put{
			Path: path, NextMS: next[0], After: &schedules.Stored{Schedule: schedule, Access: api.AccessUnrestricted},
		})
	})
}
