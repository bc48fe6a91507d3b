package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/cmd/sousbench/mirrored"
)

const (
	mirroredJobs = 1_000_000 // times the scale
	// catchUpRate is how many ends of jobs a second the mirror must apply, and lagLimit the bound of the
	// p99 from an end to its row at half of that rate.
	catchUpRate    = 15_000
	lagLimit       = 500 * time.Millisecond
	filterLimit    = 50 * time.Millisecond
	wordsLimit     = 150 * time.Millisecond
	searchedQueues = 20 // that have the jobs
)

// searched are the searches that are measured.
var searched = []struct {
	name  string
	limit time.Duration
	q     search.Jobs
}{
	{"newest", filterLimit, search.Jobs{}},
	{"state", filterLimit, search.Jobs{States: []api.JobState{api.JobPending}}},
	{"queue and state", filterLimit, search.Jobs{Queues: []string{"q1", "q2"}, States: []api.JobState{api.JobCompleted}}},
	{"rare tag", filterLimit, search.Jobs{Tags: []search.Tag{{Key: "customer", Value: "c77"}}}},
	{"frequent tag by end", filterLimit, search.Jobs{Tags: []search.Tag{{Key: "region", Value: "r1"}}, Order: search.Order{Sort: search.SortEnded}}},
	{"worker by duration", filterLimit, search.Jobs{Worker: "worker3", Order: search.Order{Sort: search.SortDuration}}},
	{"rare word", wordsLimit, search.Jobs{Words: "word77"}},
	{"word of all", wordsLimit, search.Jobs{Words: "parcel"}},
	{"word and state", wordsLimit, search.Jobs{Words: "parcel", States: []api.JobState{api.JobPending}}},
	{"phrase", wordsLimit, search.Jobs{Words: `"deliver the parcel" city7`}},
	{"rank", wordsLimit, search.Jobs{Words: "city7 parcel", Order: search.Order{Sort: search.SortRank}}},
	{"prefix", wordsLimit, search.Jobs{Words: "word77*"}},
}

// mirrorBench measures the mirror: the delay from the end of a job to its row at half of the required
// rate, the ends a second that it applies after it was away, and searches over all jobs.
func mirrorBench(ctx context.Context, o options) ([]row, error) {
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := startStore(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer store.stop()
	b := mirrorBed{o: o, store: store, dir: filepath.Join(dir, "mirror")}
	rows, err := b.lag(ctx)
	if err != nil {
		return nil, err
	}
	n := int(mirroredJobs * o.scale)
	if err := b.away(ctx, n); err != nil {
		return nil, err
	}
	more, err := b.back(ctx, n)
	return append(rows, more...), err
}

// mirrorBed has a store, and a folder for a mirror of it.
type mirrorBed struct {
	o     options
	store *process
	dir   string
}

// serve starts a server, with the mirror or without.
func (b *mirrorBed) serve(ctx context.Context, roles string) (*process, *client.Client, error) {
	args := append(profileArgs(b.o), "--roles", roles, "--mirror-dir", b.dir, "--stream-frame-rate", "1000000")
	server, err := startSous(ctx, b.o, b.store, args...)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New("http://"+server.addr, client.Config{})
	if err != nil {
		server.stop()
	}
	return server, c, err
}

// lag has workers end jobs at half of catchUpRate, and measures when the end of a further job is found.
func (b *mirrorBed) lag(ctx context.Context) ([]row, error) {
	server, c, err := b.serve(ctx, "api,scheduler,mirror")
	if err != nil {
		return nil, err
	}
	defer server.stop()
	if _, err := mirrored.CaughtUp(ctx, c, 0); err != nil {
		return nil, err
	}
	var ended atomic.Int64
	work, working := errgroup.WithContext(ctx)
	begin := time.Now()
	for i := range streamWorkers {
		work.Go(func() error {
			return bench(server).Paced(working, i, begin.Add(b.o.seconds), catchUpRate/2/streamWorkers, &ended)
		})
	}
	delays, err := bench(server).Delays(ctx, c.Tenant(tenant), begin.Add(b.o.seconds))
	if err := errors.Join(err, work.Wait()); err != nil {
		return nil, err
	}
	p99 := quantile(delays, 0.99)
	return []row{
		{name: "job ends, half of the required rate", value: fmt.Sprintf("%.0f/s", float64(ended.Load())/time.Since(begin).Seconds())},
		{name: "from the end of a job until it is found, p50", value: ms(quantile(delays, 0.5))},
		{name: "the same, p99", value: ms(p99), want: "< " + ms(lagLimit), ok: p99 < lagLimit},
	}, nil
}

// away has n jobs made and most of them ended while there is no mirror.
func (b *mirrorBed) away(ctx context.Context, n int) error {
	server, _, err := b.serve(ctx, "api,scheduler")
	if err != nil {
		return err
	}
	defer server.stop()
	var work errgroup.Group
	for i := range streamWorkers {
		work.Go(func() error { return bench(server).Make(ctx, i, n/streamWorkers, searchedQueues) })
	}
	return work.Wait()
}

// back starts a server with the mirror, which catches up with n jobs, and searches.
func (b *mirrorBed) back(ctx context.Context, n int) ([]row, error) {
	server, c, err := b.serve(ctx, "api,scheduler,mirror")
	if err != nil {
		return nil, err
	}
	defer server.stop()
	stopProfile := startProfile(ctx, b.o, "mirror")
	begin, t := time.Now(), c.Tenant(tenant)
	first, err := mirrored.CaughtUp(ctx, c, 0)
	if err != nil {
		return nil, err
	}
	missing := int64(n) * (searchedQueues - 1) / searchedQueues // the ends have events
	jobs, err := mirrored.CaughtUp(ctx, c, first+missing)
	if err != nil {
		return nil, err
	}
	rate := float64(jobs-first) / time.Since(begin).Seconds()
	stopProfile()
	rows := []row{{name: fmt.Sprintf("catching up with %d jobs", jobs-first), value: fmt.Sprintf("%.0f/s", rate), want: fmt.Sprintf("≥ %d/s", catchUpRate), ok: rate >= catchUpRate}}
	for _, s := range searched {
		took, err := mirrored.Pages(ctx, t, s.q, b.o.seconds/4)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		p50, p99 := quantile(took, 0.5), quantile(took, 0.99)
		rows = append(rows, row{name: "page, " + s.name, value: fmt.Sprintf("p50 %s, p99 %s", ms(p50), ms(p99)), want: "< " + ms(s.limit), ok: p99 < s.limit})
	}
	return rows, nil
}

// bench returns the workers of a server.
func bench(server *process) mirrored.Workers {
	return mirrored.Workers{Server: "http://" + server.addr, Tenant: tenant, Namespace: namespace, Batch: queueBatch}
}
