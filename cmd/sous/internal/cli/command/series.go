package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/search"
)

// RegisterSeries adds the flags of the time of a series to a command, and returns what reads them.
func RegisterSeries(cmd *cobra.Command) func() search.SeriesRange {
	var since, until, bucket time.Duration
	flags := cmd.Flags()
	flags.DurationVar(&since, "since", time.Hour, "begin this long before now, such as 24h")
	flags.DurationVar(&until, "until", 0, "end this long before now")
	flags.DurationVar(&bucket, "bucket", 0, "time of a row (default: a 12th)")
	return func() search.SeriesRange {
		now := time.Now()
		r := search.SeriesRange{FromMS: now.Add(-since).UnixMilli(), ToMS: now.Add(-until).UnixMilli() + 1, BucketMS: bucket.Milliseconds()}
		if bucket == 0 {
			r.BucketMS = max(1, (r.ToMS-r.FromMS+11)/12)
		}
		return r
	}
}

// PrintSeries prints a series as a table with a row for each bucket, then its failures. noun names one
// record.
func (a *App) PrintSeries(s search.Series, noun string) error {
	if s.Mirror.Rebuilding {
		a.Note("the mirror is being rebuilt: %ss may be missing", noun)
	}
	if s.Cut {
		a.Note("the figures are of the newest %s", Plural(int(s.Records), noun))
	}
	return a.Print(s, SeriesText(s))
}

// SeriesText returns a series as tables. Times are those of the percentiles 50, 95 and 99 in
// milliseconds.
func SeriesText(s search.Series) string {
	if len(s.Buckets) == 0 {
		return "none\n"
	}
	kinds, waits := map[string]bool{}, false
	for _, b := range s.Buckets {
		for kind := range b.Counts {
			kinds[kind] = true
		}
		waits = waits || b.Wait != nil
	}
	names := slices.Sorted(maps.Keys(kinds))
	header := []string{"FROM"}
	for _, name := range names {
		header = append(header, strings.ToUpper(name))
	}
	if waits {
		header = append(header, "WAIT P50", "P95", "P99")
	}
	header = append(header, "RUN P50", "P95", "P99")
	var rows [][]string
	for _, b := range s.Buckets {
		row := []string{TimeText(b.StartMS)}
		for _, name := range names {
			row = append(row, fmt.Sprint(b.Counts[name]))
		}
		if waits {
			row = append(row, percentilesRow(b.Wait)...)
		}
		rows = append(rows, append(row, percentilesRow(b.Run)...))
	}
	text := Table(header, rows)
	if len(s.Failures) == 0 {
		return text
	}
	rows = nil
	for _, f := range s.Failures {
		rows = append(rows, []string{fmt.Sprint(f.Count), f.Error})
	}
	return text + "\n" + Table([]string{"FAILURES", "ERROR"}, rows)
}

// percentilesRow returns the cells of percentiles.
func percentilesRow(p *search.Percentiles) []string {
	if p == nil {
		return []string{"-", "-", "-"}
	}
	return []string{fmt.Sprint(p.P50), fmt.Sprint(p.P95), fmt.Sprint(p.P99)}
}
