package search

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

// JobSeries returns the figures of the jobs that ended in a time. It sets q.Ended. Errors:
// CodeInvalid, CodeSearchSyntax, CodeMirrorUnavailable, CodeSearchDeadline, CodeCapacityLimit.
func (s *Searcher) JobSeries(ctx context.Context, tenant string, q search.Jobs, r search.SeriesRange) (*search.Series, error) {
	q.Ended = search.Range{FromMS: r.FromMS, ToMS: r.ToMS}
	selected, err := jobSelection(tenant, &q)
	if err != nil {
		return nil, err
	}
	return s.series(ctx, selected, r, "j.ended_ms, j.state, CASE WHEN j.started_ms > 0 THEN j.started_ms - j.created_ms ELSE -1 END, "+
		"CASE WHEN j.started_ms > 0 THEN j.ended_ms - j.started_ms ELSE -1 END, 0.0, 0, 0, CASE WHEN j.state = 'dead' THEN coalesce(substr(j.error, 1, ?), j.dead_reason, '') ELSE '' END")
}

// ActivationSeries returns the figures of the activations that ended in a time, as JobSeries does.
func (s *Searcher) ActivationSeries(ctx context.Context, tenant string, q search.Activations, r search.SeriesRange) (*search.Series, error) {
	q.Ended = search.Range{FromMS: r.FromMS, ToMS: r.ToMS}
	selected, err := activationSelection(tenant, &q)
	if err != nil {
		return nil, err
	}
	return s.series(ctx, selected, r, "j.end_ms, j.status, -1, j.duration_ms, j.cpu_ms, j.memory_peak, j.egress, coalesce(substr(j.error_type, 1, ?), '')")
}

// checkSeries returns r with the bucket that is used. Errors: CodeInvalid.
func checkSeries(r search.SeriesRange) (search.SeriesRange, error) {
	if r.FromMS <= 0 || r.ToMS <= r.FromMS || r.ToMS > maxMS {
		return r, api.InvalidField("to_ms", "must be a time after from_ms, and both are required")
	}
	if r.BucketMS == 0 {
		r.BucketMS = max(1, (r.ToMS-r.FromMS+search.DefaultBuckets-1)/search.DefaultBuckets)
	}
	if r.BucketMS < 0 || (r.ToMS-r.FromMS-1)/r.BucketMS >= search.MaxBuckets {
		return r, api.InvalidField("bucket_ms", "must be such that there are at most 500 buckets")
	}
	return r, nil
}

// ended is a record that ended. A time that it does not have is negative.
type ended struct {
	atMS, waitMS, runMS int64
	state, failure      string
	cpuMS               float64
	memory, egress      int64
}

// series reads the records of a selection, whose columns are those of ended, and adds them up.
func (s *Searcher) series(ctx context.Context, selected *selection, r search.SeriesRange, columns string) (*search.Series, error) {
	r, err := checkSeries(r)
	if err != nil {
		return nil, err
	}
	sum := newSummary(r)
	err = s.run(ctx, selected.tenant, func(ctx context.Context, tx *sql.Tx) error {
		p := &planner{selection: selected, bounds: s.bounds, ctx: ctx, tx: tx}
		from, probe, err := p.seriesRows()
		if err != nil {
			return err
		}
		var examined int
		err = tx.QueryRowContext(ctx, "SELECT count(*) FROM ("+from.sql+")", from.args...).Scan(&examined)
		if err != nil {
			return err
		}
		sum.out.Cut = examined >= p.bounds.seriesRows
		where := p.conditions(probe)
		args := append(append([]any{search.MaxFailureBytes}, from.args...), where.args...)
		rows, err := tx.QueryContext(ctx, "SELECT "+columns+" FROM ("+from.sql+") d CROSS JOIN "+p.name+" j NOT INDEXED ON j.row = d.row WHERE "+where.sql, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var e ended
			if err := rows.Scan(&e.atMS, &e.state, &e.waitMS, &e.runMS, &e.cpuMS, &e.memory, &e.egress, &e.failure); err != nil {
				return err
			}
			sum.add(&e)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	out := sum.finish()
	out.Mirror = s.view.State()
	return out, nil
}

// seriesRows returns the rows that are examined for a series, and whether each must be looked up among
// the words.
func (p *planner) seriesRows() (fragment, bool, error) {
	lead, err := p.choose()
	if err != nil {
		return fragment{}, false, err
	}
	if lead.few || p.match != "" && !lead.probe {
		return p.ordered(lead.source, p.low, p.high, false, p.bounds.seriesRows), lead.probe, nil
	}
	return p.along(pageRequest{Order: search.Order{Sort: search.SortEnded}})(p.bounds.seriesRows), lead.probe, nil
}

// summary adds up records.
type summary struct {
	out      search.Series
	buckets  map[int64]*bucketSum
	failures map[string]int64
}

type bucketSum struct {
	search.SeriesBucket
	waits, runs []int64
}

func newSummary(r search.SeriesRange) *summary {
	return &summary{
		out:     search.Series{FromMS: r.FromMS, ToMS: r.ToMS, BucketMS: r.BucketMS, Buckets: []search.SeriesBucket{}, Failures: []search.SeriesFailure{}},
		buckets: map[int64]*bucketSum{}, failures: map[string]int64{},
	}
}

func (s *summary) add(e *ended) {
	at := s.out.FromMS + (e.atMS-s.out.FromMS)/s.out.BucketMS*s.out.BucketMS
	b := s.buckets[at]
	if b == nil {
		b = &bucketSum{SeriesBucket: search.SeriesBucket{StartMS: at, Counts: map[string]int64{}}}
		s.buckets[at] = b
	}
	s.out.Records++
	b.Counts[e.state]++
	if e.waitMS >= 0 {
		b.waits = append(b.waits, e.waitMS)
	}
	if e.runMS >= 0 {
		b.runs = append(b.runs, e.runMS)
	}
	b.CPUMS += e.cpuMS
	b.Memory = max(b.Memory, e.memory)
	b.Egress += e.egress
	if e.failure != "" {
		s.failures[strings.ToValidUTF8(e.failure, "")]++
	}
}

// finish returns the series.
func (s *summary) finish() *search.Series {
	for _, b := range s.buckets {
		b.Wait, b.Run = percentiles(b.waits), percentiles(b.runs)
		s.out.Buckets = append(s.out.Buckets, b.SeriesBucket)
	}
	slices.SortFunc(s.out.Buckets, func(a, b search.SeriesBucket) int { return cmp.Compare(a.StartMS, b.StartMS) })
	for text, count := range s.failures {
		s.out.Failures = append(s.out.Failures, search.SeriesFailure{Error: text, Count: count})
	}
	slices.SortFunc(s.out.Failures, func(a, b search.SeriesFailure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error))
	})
	s.out.Failures = s.out.Failures[:min(len(s.out.Failures), search.MaxFailures)]
	return &s.out
}

// percentiles returns those of values by the nearest rank, nil for none.
func percentiles(values []int64) *search.Percentiles {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	at := func(percent int) int64 { return values[(len(values)*percent+99)/100-1] }
	return &search.Percentiles{P50: at(50), P95: at(95), P99: at(99)}
}
