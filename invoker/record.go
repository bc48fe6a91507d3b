package invoker

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/invoker/resolve"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/tracing"
)

// newRecord returns the record of an activation that begins. Its id is
//
//   - derived from the idempotency key, so that a repeat finds the record;
//   - inv.ActivationID, which the trigger derived from its cause (a Cadence task);
//   - otherwise random, a UUIDv7, whose order is that of creation.
//
// A derived id comes with a claim, a random value by which a caller whose write has an
// unknown outcome recognizes its own record. beginMS is the moment at which the slot was
// taken.
func newRecord(inv *api.Invocation, res *resolve.Resolution, beginMS, deadlineMS int64, cold bool) *activations.Record {
	var id, digest, claim string
	switch {
	case inv.IdempotencyKey != "":
		id = inv.DerivedID()
		digest = fingerprint(inv)
		claim = newActivationID()
	case inv.ActivationID != "":
		id, claim = inv.ActivationID, newActivationID()
	default:
		id = newActivationID()
	}
	return &activations.Record{
		EventSHA256: digest,
		Claim:       claim,
		RetentionMS: res.Version.Config.RetentionMS(),
		Events:      event.Recorded(&res.Version.Config),
		MemoryMB:    res.Version.Config.MemoryMB,
		Activation: api.Activation{
			ActivationID: id,
			Tenant:       inv.Tenant, Namespace: inv.Namespace, Function: inv.Function,
			Ref:     api.Ref{Alias: inv.Ref.Alias, Version: res.Version.Version},
			Trigger: inv.Trigger,
			Status:  api.StatusRunning,
			StartMS: beginMS, DeadlineMS: deadlineMS,
			Attempt: max(1, inv.Attempt), RequestID: inv.RequestID, ColdStart: cold,
		},
	}
}

// terminal returns rec as it ended with result, of a run that began at beginMS. DurationMS
// is counted from beginMS, EndMS is the store's clock; both stay plausible (not negative,
// not before the start) if that clock is set back during the run.
func (i *Invoker) terminal(rec *activations.Record, beginMS int64, result sandbox.Result) *activations.Record {
	final := *rec
	final.Status = result.Status
	final.EndMS = max(i.store.NowMS(), rec.StartMS)
	final.DurationMS = max(0, final.EndMS-beginMS)
	final.Result = result.Value
	final.Error = result.Error
	final.LogsTruncated = result.LogsTruncated
	final.CPUMS = float64(result.CPU.Microseconds()) / 1000
	final.MemoryPeakBytes = result.MemoryPeakBytes
	final.StreamBytes = result.StreamBytes
	// The result of an idempotent call answers repeats of the call, so it is stored anyway. Repeats
	// of an asynchronous one are answered without it.
	answers := rec.EventSHA256 != "" && rec.JobID == ""
	final.Short = i.quotas != nil && !answers && max(len(result.Value), result.Error.Bytes()) > api.MaxInlineResultBytes &&
		i.quotas.Records(i.life, rec.Tenant) != nil
	final.FirstByteMS = float64(result.FirstByte.Microseconds()) / 1000
	return &final
}

// ids returns the fields that name an activation in a log line.
func ids(rec *activations.Record) []zap.Field {
	fields := make([]zap.Field, 0, 13) // with room for what ended adds
	return append(fields,
		zap.String("activation_id", rec.ActivationID), zap.String("request_id", rec.RequestID),
		zap.String("tenant", rec.Tenant), zap.String("namespace", rec.Namespace),
		zap.String("function", rec.Function), zap.Int64("version", rec.Ref.Version))
}

// LogActivation is the message of the log line, at info level, that each activation
// leaves.
const LogActivation = "activation"

// ended counts an activation that ended at now, and logs it without its event and its result,
// or passes it to the observer. traceID is "" where the activation is not traced.
func (i *Invoker) ended(rec *activations.Record, took time.Duration, now time.Time, traceID string) {
	i.metrics.end(rec, took, now)
	i.calls.Ended(&rec.Activation, rec.MemoryMB)
	i.charge(rec, took)
	if i.observer != nil {
		i.observer.Ended(&rec.Activation)
		return
	}
	entry := i.logger.Check(zapcore.InfoLevel, LogActivation)
	if entry == nil {
		return
	}
	fields := append(ids(rec), zap.String("trigger", rec.Trigger.Type), zap.String("status", string(rec.Status)),
		zap.Float64("duration_ms", float64(took.Microseconds())/1000), zap.Bool("cold_start", rec.ColdStart))
	if traceID != "" {
		fields = append(fields, tracing.Field(traceID))
	}
	if rec.Error != nil {
		fields = append(fields, zap.String("error", string(rec.Error.Type)))
	}
	entry.Write(fields...)
}

func newActivationID() string { return uuid.Must(uuid.NewV7()).String() }

// mustJSON encodes a value of our own types, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := api.EncodeJSON(v)
	if err != nil {
		panic(fmt.Sprintf("invoker: encode %T: %v", v, err))
	}
	return b
}
