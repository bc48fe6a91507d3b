package examine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/examine"
	"github.com/codesous/sous/storage/storagetest"
)

// wrongClock differs from the machine's clock, which is the store's, too, by offset;
// each reading also moves it by step.
type wrongClock struct{ offset, step atomic.Int64 }

func (c *wrongClock) now() time.Time {
	return time.Now().Add(time.Duration(c.offset.Add(c.step.Load())))
}

func (c *wrongClock) set(offset time.Duration) { c.offset.Store(int64(offset)) }

func TestSkew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		offset, step time.Duration // of this process's clock
		ahead        time.Duration // of the store's
		bound        time.Duration
		level        examine.Level
	}{
		"none":                 {0, 0, 0, 0, examine.LevelOK},
		"the store is ahead":   {-3 * time.Second, 0, 3 * time.Second, 0, examine.LevelWarning},
		"the store is behind":  {3 * time.Second, 0, -3 * time.Second, 0, examine.LevelWarning},
		"far ahead":            {-time.Hour, 0, time.Hour, 0, examine.LevelFailure},
		"far behind":           {time.Hour, 0, -time.Hour, 0, examine.LevelFailure},
		"a slow answer":        {-6 * time.Second, 4 * time.Second, 0, 2 * time.Second, examine.LevelOK},
		"a slow answer, skew":  {-10 * time.Second, 4 * time.Second, 4 * time.Second, 2 * time.Second, examine.LevelWarning},
		"a slow answer, worse": {-14 * time.Second, 4 * time.Second, 8 * time.Second, 2 * time.Second, examine.LevelFailure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var clock wrongClock
			s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: clock.now})
			clock.set(test.offset)
			clock.step.Store(int64(test.step))
			got, err := examine.CompareClocks(t.Context(), s)
			if err != nil {
				t.Fatalf("examine.CompareClocks: %v", err)
			}
			const slack = 900 * time.Millisecond // a busy machine's
			if (got.Ahead-test.ahead).Abs() > slack || (got.Bound-test.bound).Abs() > slack {
				t.Errorf("got %s ±%s, want %s ±%s", got.Ahead, got.Bound, test.ahead, test.bound)
			}
			if got.Level() != test.level {
				t.Errorf("got %s, want %s", got.Level(), test.level)
			}
		})
	}
}

func TestSkewLevels(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ahead, bound time.Duration
		want         examine.Level
	}{
		{examine.SkewWarning, 0, examine.LevelOK},
		{examine.SkewWarning + 1, 0, examine.LevelWarning},
		{-examine.SkewWarning - 1, 0, examine.LevelWarning},
		{examine.SkewWarning + 1, 1, examine.LevelOK},
		{examine.SkewFailure, 0, examine.LevelWarning},
		{examine.SkewFailure + 1, 0, examine.LevelFailure},
		{-examine.SkewFailure - 1, 0, examine.LevelFailure},
		{examine.SkewFailure + 1, 1, examine.LevelWarning},
	} {
		if got := (examine.Skew{Ahead: test.ahead, Bound: test.bound}).Level(); got != test.want {
			t.Errorf("%s ±%s: got %s, want %s", test.ahead, test.bound, got, test.want)
		}
	}
	// What examine.SkewFailure promises of two replicas.
	if got := 2 * examine.SkewFailure.Milliseconds(); got > api.LostGraceMS {
		t.Errorf("got replicas that may differ by %d ms, want at most the grace period of %d ms", got, api.LostGraceMS)
	}
}

func TestExamineReportsTheClock(t *testing.T) {
	t.Parallel()
	url := answering(t, valkeyInfo, redisSettings())
	for offset, want := range map[time.Duration]verdict{
		2 * time.Second: {examine.CheckClock, examine.LevelWarning, "behind this machine's, more than 1s"},
		-time.Minute:    {examine.CheckClock, examine.LevelFailure, "ahead of this machine's, more than 5s"},
	} {
		clock := func() time.Time { return time.Now().Add(offset) }
		r, err := examine.Servers(t.Context(), storagetest.Open(t, storage.Config{URL: url, Clock: clock}))
		if err != nil {
			t.Fatalf("examine.Servers: %v", err)
		}
		checkFindings(t, r, want)
	}
}

// A change of level is logged once, and the gauge follows every comparison.
func TestClockWatch(t *testing.T) {
	t.Parallel()
	var clock wrongClock
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL, Clock: clock.now})
	core, logs := observer.New(zap.InfoLevel)
	reg := prometheus.NewRegistry()
	w, err := examine.NewClockWatch(s, examine.Report{}, examine.ClockWatchConfig{Metrics: reg, Logger: zap.New(core)})
	if err != nil {
		t.Fatalf("examine.NewClockWatch: %v", err)
	}
	for _, step := range []struct {
		offset time.Duration
		level  string // of the line that is logged, "" for none
		text   string
	}{
		{0, "", ""},
		{-3 * time.Second, "warn", "more than 1s"},
		{-3 * time.Second, "", ""},
		{-time.Minute, "warn", "more than 5s"},
		{-3 * time.Second, "warn", "more than 1s"},
		{0, "info", "the clocks agree again"},
		{0, "", ""},
	} {
		clock.set(step.offset)
		if err := w.RunOnce(t.Context()); err != nil {
			t.Fatalf("RunOnce: %v", err)
		}
		if got := metricstest.Value(t, reg, "sous_store_clock_skew_seconds"); got < -step.offset.Seconds()-0.9 || got > -step.offset.Seconds()+0.9 {
			t.Errorf("clock set by %s: got %g s exported, want %g s, to 0.9 s", step.offset, got, -step.offset.Seconds())
		}
		lines := logs.TakeAll()
		switch {
		case step.level == "" && len(lines) > 0:
			t.Errorf("%s: got %v logged, want nothing", step.offset, lines)
		case step.level != "" && (len(lines) != 1 || lines[0].Level.String() != step.level || !strings.Contains(lines[0].Message, step.text)):
			t.Errorf("%s: got %v logged, want %s with %q", step.offset, lines, step.level, step.text)
		}
	}
	server.Kill()
	if err := w.RunOnce(t.Context()); api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Errorf("got %v of a store that is gone, want %s", err, api.CodeStoreUnavailable)
	}
}

// A watch begins at the level of the report that was logged before.
func TestClockWatchDoesNotRepeatTheReport(t *testing.T) {
	t.Parallel()
	clock := func() time.Time { return time.Now().Add(-time.Minute) }
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: clock})
	report, err := examine.Servers(t.Context(), s)
	if err != nil {
		t.Fatalf("examine.Servers: %v", err)
	}
	core, logs := observer.New(zap.InfoLevel)
	reg := prometheus.NewRegistry()
	w, err := examine.NewClockWatch(s, report, examine.ClockWatchConfig{Metrics: reg, Logger: zap.New(core)})
	if err != nil {
		t.Fatalf("examine.NewClockWatch: %v", err)
	}
	if got := metricstest.Value(t, reg, "sous_store_clock_skew_seconds"); got < 59 {
		t.Errorf("got %g exported before the first comparison, want the report's", got)
	}
	if err := w.RunOnce(t.Context()); err != nil {
		t.Fatalf("RunOnce: %v", err)
	}
	if logs.Len() > 0 {
		t.Errorf("got %v logged, want nothing", logs.All())
	}
}

// Run ends with its context, whenever that is.
func TestClockWatchStops(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	w, err := examine.NewClockWatch(s, examine.Report{}, examine.ClockWatchConfig{})
	if err != nil {
		t.Fatalf("examine.NewClockWatch: %v", err)
	}
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		cancel()
		<-ended
	}
}

// Run compares at each interval, also after comparisons that failed, which are logged
// once.
func TestClockWatchRuns(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	core, logs := observer.New(zap.InfoLevel)
	reg := prometheus.NewRegistry()
	w, err := examine.NewClockWatch(s, examine.Report{}, examine.ClockWatchConfig{Interval: time.Millisecond, Metrics: reg, Logger: zap.New(core)})
	if err != nil {
		t.Fatalf("examine.NewClockWatch: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	more := func(outcome string) {
		t.Helper()
		rounds := func() float64 {
			return metricstest.Value(t, reg, "sous_loop_rounds_total", "loop=store_clock", "outcome="+outcome)
		}
		before := rounds()
		storagetest.Eventually(t, func() bool { return rounds() >= before+3 })
	}
	more("ok")
	server.Kill()
	more("error")
	server.Start(t)
	more("ok")
	if got := logs.FilterMessage("the store's clock could not be compared").Len(); got != 1 {
		t.Errorf("got %d lines of an outage, want 1", got)
	}
}

func TestClockWatchRefusesANegativeInterval(t *testing.T) {
	t.Parallel()
	_, err := examine.NewClockWatch(nil, examine.Report{}, examine.ClockWatchConfig{Interval: -1})
	if api.ErrorCode(err) != api.CodeInvalid {
		t.Errorf("got %v, want %s", err, api.CodeInvalid)
	}
}
