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
)

// What the schedules benchmark stores: their interval is the number of schedules that one
// second's due ones stand for.
const (
	scheduleTenants = 1000
	schedulesEach   = 100
	scheduleEvery   = scheduleTenants * schedulesEach / 100 // seconds: 100 are due each second
	scheduleWatch   = 60 * time.Second
)

// schedules: what the ticker costs and how late it is, with 100,000 schedules of which 100
// are due each second. The scheduler runs alone in its process: what its ticks make waits
// in the queues.
func schedules(ctx context.Context, o options) ([]row, error) {
	b, err := newBed(ctx, o, "--roles", "api")
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
	if err := sleep.For(ctx, 10*time.Second); err != nil { // what fell due while they were made is caught up
		return nil, err
	}
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
		{name: "of the store's beside it", value: fmt.Sprintf("%.1f%% of a core", 100*(after.storeCPU-before.storeCPU).Seconds()/took.Seconds())},
		{"fired later than 1.5 s", fmt.Sprintf("%.0f of %.0f", late, fired), "none", late == 0 && fired > 0.9*100*took.Seconds()},
		{name: "lag, mean", value: fmt.Sprintf("%.0f ms", 1000*(after.lag-before.lag)/fired)},
	}, nil
}

func scheduleTenant(n int) string { return fmt.Sprintf("t_bench%05d", n) }

// tickerFigures is how the scheduler's process stands.
type tickerFigures struct {
	at               time.Time
	cpu, storeCPU    time.Duration
	fired, late, lag float64 // ticks; those later than 1.5 s; the sum of all, in seconds
}

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
	in := bufio.NewScanner(resp.Body)
	inTime := 0.0
	for in.Scan() {
		name, text, _ := strings.Cut(in.Text(), " ")
		value, _ := strconv.ParseFloat(text, 64) // of other lines it is none
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

// processorTime returns the processor time that the process has used.
func (p *process) processorTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	const ticksPerSecond, user, system = 100, 11, 12 // of the fields behind the name
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

// fillSchedules makes the schedules: half of them run a function, half make a job for a queue.
func fillSchedules(ctx context.Context, store *process) error {
	s, err := storage.Open(ctx, storage.Config{URL: "redis://" + store.addr})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // all has been written
	records, now := storage.NewSchedules(s), s.NowMS()
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
		return records.Put(ctx, storage.SchedulePut{
			Path: path, NextMS: next[0], After: &storage.StoredSchedule{Schedule: schedule, Access: api.AccessUnrestricted},
		})
	})
}
