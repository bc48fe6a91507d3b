package invoker

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage"
)

// newRecord is an activation as it begins.
func newRecord(inv *api.Invocation, res *resolution, beginMS, deadlineMS int64, cold bool) *storage.StoredActivation {
	var id, digest, claim string
	if inv.IdempotencyKey != "" {
		id = api.DerivedActivationID(inv.Tenant, inv.Namespace, inv.Function, inv.Ref, inv.IdempotencyKey)
		digest = fingerprint(inv)
		claim = newActivationID()
	} else {
		id = newActivationID()
	}
	return &storage.StoredActivation{
		EventSHA256: digest,
		Claim:       claim,
		Activation: api.Activation{
			ActivationID: id,
			Tenant:       inv.Tenant, Namespace: inv.Namespace, Function: inv.Function,
			Ref:     api.Ref{Alias: inv.Ref.Alias, Version: res.Version.Version},
			Trigger: inv.Trigger,
			Status:  api.StatusRunning,
			StartMS: beginMS, DeadlineMS: deadlineMS,
			Attempt: 1, RequestID: inv.RequestID, ColdStart: cold,
		},
	}
}

// terminal is rec as result ended it.
func (i *Invoker) terminal(rec *storage.StoredActivation, result sandbox.Result) *storage.StoredActivation {
	final := *rec
	final.Status = result.Status
	final.EndMS = max(i.store.NowMS(), rec.StartMS)
	final.DurationMS = final.EndMS - rec.StartMS
	final.Result = result.Value
	final.Error = result.Error
	final.LogsTruncated = result.LogsTruncated
	final.CPUMS = float64(result.CPU.Microseconds()) / 1000
	final.MemoryPeakBytes = result.MemoryPeakBytes
	return &final
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
