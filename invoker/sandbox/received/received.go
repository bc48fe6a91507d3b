// Package received bounds what a child may send to its parent in one activation.
package received

import (
	"errors"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Bounds of what a child may send in one activation. A child of this build stays far below
// them, whatever its script does, except for the arguments of host calls: a script decides
// about these.
const (
	// frameCost is the least that a frame counts, in bytes: reading one costs, however small
	// it is.
	frameCost = 256
	// signalCost is that of a frame that has no answer: a script causes few of them.
	signalCost = 4 << 10
	// logCost is that of a log line. The child ends its logs at api.MaxLogBytes, where each line
	// costs its text and wire.LogRecordOverhead: 32,768 empty lines, which cost 4 MiB here.
	logCost = 4 * wire.LogRecordOverhead
	// maxLogReceived bounds the frames of logs.
	maxLogReceived = 5 * api.MaxLogBytes
	// maxReceived bounds all frames but those of a streamed answer, which has its own bound.
	maxReceived = api.MaxSentBytes
)

// ErrFlood is the error of a child that sends more than it may.
var ErrFlood = errors.New("it sent more than it may")

// Count counts what a child has sent in an activation, by kind.
type Count struct{ logs, streamed, all int64 }

// Add counts a frame with a payload of n bytes. Errors: one of ErrFlood beyond a bound.
func (r *Count) Add(kind wire.Kind, n int) error {
	cost := int64(max(n, frameCost))
	switch kind {
	case wire.KindChunk, wire.KindStreamEnd:
		r.streamed += cost
		if r.streamed > 2*api.MaxStreamBytes {
			return fmt.Errorf("%w: chunks of a streamed answer beyond its limit of %s", ErrFlood, api.SizeText(api.MaxStreamBytes))
		}
		return nil
	case wire.KindAbandon, wire.KindAbort, wire.KindVerdict:
		cost = int64(max(n, signalCost))
	case wire.KindLog:
		cost = int64(max(n, logCost))
		r.logs += cost
		if r.logs > maxLogReceived {
			return fmt.Errorf("%w: logs beyond their limit of %s", ErrFlood, api.SizeText(api.MaxLogBytes))
		}
	}
	r.all += cost
	if r.all > maxReceived {
		return fmt.Errorf("%w: more than %s in arguments of calls, logs and results", ErrFlood, api.SizeText(maxReceived))
	}
	return nil
}
