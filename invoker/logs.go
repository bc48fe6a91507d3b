package invoker

import (
	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/invoker/logsink"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage/activations"
)

// logsOf returns the sink of one attempt of an activation.
func (i *Invoker) logsOf(rec *activations.Record) *logsink.Sink {
	s := logsink.New(i.life, i.logs, rec)
	s.Turns = i.turns
	if i.observer != nil {
		s.Logged = func(line api.LogLine) { i.observer.Logged(&rec.Activation, line) }
	}
	if i.quotas != nil {
		s.Admits = func() bool { return i.quotas.Records(i.life, rec.Tenant) == nil }
		s.Charge = func(bytes int) { i.quotas.Charge(rec.Tenant, quota.RecordBytes, int64(bytes)) }
	}
	return s
}

// withoutSecrets returns result without the secrets that the activation of sc may have read. It
// waits for a turn of the tenant: an activation whose tenant has used up its share holds its
// sandbox for longer.
func (i *Invoker) withoutSecrets(sc *scope, result sandbox.Result) sandbox.Result {
	if sc.secrets == nil || result.Error == nil && len(result.Verdicts) == 0 {
		return result
	}
	turn := i.turns.Await(sc.Tenant, logsink.MaxFailureWait)
	defer turn.End()
	result.Error = sc.secrets.Failure(result.Error, turn.Pause)
	sc.secrets.Verdicts(result.Verdicts, turn.Pause)
	return result
}
