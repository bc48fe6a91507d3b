// Package search holds the queries of jobs and activations across queues and functions, and their
// answers.
package search

import (
	"github.com/codesous/sous/api"
)

// The bounds of a search.
const (
	MaxQueryBytes = 1024   // of Words
	MaxTexts      = 50     // values of one filter
	MaxTags       = 10     // tags of a search
	MaxTextBytes  = 512    // of the text of one filter
	MaxCount      = 10_000 // up to which rows are counted
	MaxPageBytes  = 8 << 20
)

// The sort keys. Jobs and activations without the time of a key are left out of a list in its order.
const (
	SortCreated  = "created" // of activations: their start
	SortStarted  = "started"
	SortEnded    = "ended"
	SortDue      = "due"
	SortDuration = "duration" // from the start to the end
	SortRank     = "rank"     // best match first
)

// Sorts returns the sort keys of jobs.
func Sorts() []string {
	return []string{SortCreated, SortStarted, SortEnded, SortDue, SortDuration, SortRank}
}

// ActivationSorts returns the sort keys of activations.
func ActivationSorts() []string { return []string{SortCreated, SortEnded, SortDuration, SortRank} }

// Range selects times in [FromMS, ToMS), Unix milliseconds. 0 leaves an end open.
type Range struct{ FromMS, ToMS int64 }

// Empty reports whether r selects every time.
func (r Range) Empty() bool { return r == Range{} }

// Tag is a tag of a job.
type Tag struct{ Key, Value string }

// Order is the order of a list, and whether its rows are counted.
type Order struct {
	Sort      string // one of Sorts; "" for created
	Ascending bool
	Count     bool
}

// Jobs selects jobs. Those match that match every field; zero values select all.
type Jobs struct {
	Namespace  string
	States     []api.JobState // any of them
	Queues     []string       // any of them
	Tags       []Tag          // all of them
	Created    Range
	Started    Range
	Ended      Range
	Due        Range
	Error      string // in the last error, in either case of ASCII letters
	Worker     string
	Host       string
	Batch      string
	Chain      string
	Parent     string
	Function   string
	UniqueKey  string
	DeadReason string
	Priorities []api.Priority // any of them
	Attempts   int            // at least
	Words      string         // a full-text query
	Order
}

// Activations selects activations as Jobs selects jobs.
type Activations struct {
	Namespace  string
	ID         string // the beginning or the end of the id
	Functions  []string
	Version    int64
	Statuses   []api.Status
	Triggers   []string
	ErrorType  string
	Error      string
	Job        string
	Request    string
	Started    Range
	Ended      Range
	DurationMS int64 // at least
	Words      string
	Order
}

// MirrorState is the state of the view that answered.
type MirrorState struct {
	LagMS      int64 `json:"lag_ms" doc:"how far the view is behind the store, in milliseconds"`
	Rebuilding bool  `json:"rebuilding" doc:"whether the view is being rebuilt, so that records may be missing"`
}

// MatchCount is a number of records.
type MatchCount struct {
	Value int64 `json:"value" doc:"how many records match, at most 10,000"`
	Exact bool  `json:"exact" doc:"false if more may match"`
}

// Results is a page of a search. It may be short, even empty, and still have a NextCursor: one page
// examines a bounded number of records.
type Results[T any] struct {
	Items      []T          `json:"items"`
	NextCursor *string      `json:"next_cursor"`
	Count      *MatchCount  `json:"count,omitempty" doc:"with count=true"`
	Mirror     *MirrorState `json:"mirror,omitempty" doc:"the view that answered; absent if the store answered"`
}
