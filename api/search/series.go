package search

// The bounds of series.
const (
	MaxBuckets      = 500
	DefaultBuckets  = 60
	MaxSeriesRows   = 50_000 // records that are examined
	MaxFailures     = 20     // kinds of failures
	MaxFailureBytes = 200    // of the text of a kind
)

// SeriesRange is the time that a series covers, in Unix milliseconds, by when records ended. BucketMS
// is the time of a bucket (0: such that there are DefaultBuckets).
type SeriesRange struct{ FromMS, ToMS, BucketMS int64 }

// Series has figures of the records that ended in each part of a time.
type Series struct {
	FromMS   int64           `json:"from_ms"`
	ToMS     int64           `json:"to_ms"`
	BucketMS int64           `json:"bucket_ms"`
	Buckets  []SeriesBucket  `json:"buckets" doc:"those in which records ended, oldest first"`
	Failures []SeriesFailure `json:"failures" doc:"the most frequent failures of the whole time, at most 20"`
	Records  int64           `json:"records" doc:"how many records the figures are of"`
	Cut      bool            `json:"cut" doc:"true if there are more records than are examined; the figures are of the newest ones"`
	Mirror   MirrorState     `json:"mirror"`
}

// SeriesBucket has the figures of the records that ended in [StartMS, StartMS + BucketMS).
type SeriesBucket struct {
	StartMS int64            `json:"start_ms"`
	Counts  map[string]int64 `json:"counts" doc:"how many records ended, by state or status"`
	Wait    *Percentiles     `json:"wait_ms,omitempty" doc:"of jobs: from the creation to the last start"`
	Run     *Percentiles     `json:"run_ms,omitempty" doc:"of jobs: from the last start to the end; of activations: their duration"`
	CPUMS   float64          `json:"cpu_ms,omitempty" doc:"of activations: processor time together"`
	Memory  int64            `json:"memory_peak_bytes,omitempty" doc:"of activations: the largest peak"`
	Egress  int64            `json:"egress_bytes,omitempty" doc:"of activations: together"`
}

// Percentiles are those of times in milliseconds.
type Percentiles struct {
	P50 int64 `json:"p50"`
	P95 int64 `json:"p95"`
	P99 int64 `json:"p99"`
}

// SeriesFailure is a kind of failure: the error of jobs, cut to 200 bytes, or the type of the error of
// activations.
type SeriesFailure struct {
	Error string `json:"error"`
	Count int64  `json:"count"`
}
