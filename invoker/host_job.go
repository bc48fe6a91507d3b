package invoker

import (
	"context"
	"encoding/json"
	"math"

	"github.com/codesous/sous/api"
)

// jobHost serves cs.job. It needs no capability: it needs a job that the activation
// is an attempt of.
type jobHost struct{}

// told is what an attempt tells of its job; nil for what it does not.
type told struct {
	progress   *api.JobProgress
	checkpoint json.RawMessage
}

// The order of a call counts the activation's calls: they are served side by side, and
// the last one made is to be the last word.
type checkpointArgs struct {
	Order int64 `json:"order"`
}

type progressArgs struct {
	Order   int64   `json:"order"`
	Current float64 `json:"current"`
	Total   float64 `json:"total"`
	Message string  `json:"message"`
}

func (h *jobHost) permitProgress(*scope, progressArgs) string     { return "" }
func (h *jobHost) permitCheckpoint(*scope, checkpointArgs) string { return "" }

func notAJob(call string) error {
	return api.Errorf(api.CodeHostInvalidArgument,
		"%s is for jobs: this activation is not an asynchronous invocation", call)
}

// maxProgress keeps counts exact in every JSON reader.
const maxProgress = 1 << 53

func (h *jobHost) progress(_ context.Context, s *scope, a progressArgs, _ []byte) (any, []byte, error) {
	switch {
	case s.tell == nil:
		return nil, nil, notAJob("cs.job.progress")
	case a.Current < 0 || a.Current > maxProgress || a.Total < 0 || a.Total > maxProgress:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "cs.job.progress: current and total are from 0 to 2^53")
	case len(a.Message) > api.MaxProgressMessage:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "cs.job.progress: a message is at most %d bytes", api.MaxProgressMessage)
	}
	s.tell(a.Order, told{progress: &api.JobProgress{Current: int64(math.Floor(a.Current)), Total: int64(math.Floor(a.Total)), Message: a.Message}})
	return struct{}{}, nil, nil
}

func (h *jobHost) checkpoint(_ context.Context, s *scope, a checkpointArgs, value []byte) (any, []byte, error) {
	switch {
	case s.tell == nil:
		return nil, nil, notAJob("cs.job.checkpoint")
	case len(value) > api.MaxCheckpointBytes:
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "cs.job.checkpoint: a checkpoint is at most %d bytes of JSON", api.MaxCheckpointBytes)
	case !json.Valid(value):
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "cs.job.checkpoint: a checkpoint is JSON")
	}
	s.tell(a.Order, told{checkpoint: value})
	return struct{}{}, nil, nil
}
