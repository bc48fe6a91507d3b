package invoker

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/invoker/logsink"
	"github.com/codesous/sous/invoker/models"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/vault"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/budgets"
	"github.com/codesous/sous/storage/spending"
)

// modelKeys opens the keys of providers.
type modelKeys struct{ vault *vault.Vault }

// Key implements models.Keys.
func (k modelKeys) Key(ctx context.Context, who *models.Caller, p *ai.Provider) ([]byte, error) {
	namespace, name := p.SecretAt()
	return k.vault.Provider(who.Tenant, namespace, p.Name, name, who.Activation, who.Request).Get(ctx, name)
}

// prices returns the prices that the broker applies, nil without a broker.
func (i *Invoker) prices() *spending.Prices {
	if i.broker == nil {
		return nil
	}
	return i.broker.Prices()
}

// budgets returns the budgets that the broker applies, or, without a broker, those of the store.
func (i *Invoker) budgets() (*budgets.Repository, error) {
	if i.broker == nil {
		return budgets.New(i.store, func(int64) {}) // it changes none
	}
	return i.broker.Budgets(), nil
}

// openModels makes the client of models, and what records the usage of them.
func (i *Invoker) openModels(cfg *Config) error {
	repository, err := i.budgets()
	if err != nil {
		return err
	}
	i.spending = budgets.NewRecorder(repository)
	i.models, err = models.New(models.Config{Store: i.store, Prices: i.prices(), Keys: modelKeys{i.vault}, Logger: cfg.Logger})
	return err
}

// asCaller returns an activation as a caller of models. What it spends is added to the sums of the
// tenant and of its budgets; for an attempt of a job, join replaces Admit and Spend.
func (i *Invoker) asCaller(inv *api.Invocation, rec *activations.Record, logs *logsink.Sink) *models.Caller {
	return &models.Caller{
		Activation: rec.ActivationID, Request: rec.RequestID,
		Admit: func(ctx context.Context) error { return i.spending.Admit(ctx, inv.Tenant, inv.Namespace, inv.Function) },
		Spend: func(ctx context.Context, u agent.Usage) error {
			return i.spending.Add(ctx, inv.Tenant, inv.Namespace, inv.Function, []agent.Usage{u})
		},
		Log: func(line []byte) {
			logs.Add(wire.LogRecord{TSMS: i.store.NowMS(), Level: infoLevel, JSON: true, Text: line})
		},
	}
}

// infoLevel is the index of info in wire.Levels.
const infoLevel = 1

// spends returns the function that adds usage to the ledger of a job. It is stored by a heartbeat of its
// own before the function sees the answer. The entries of a lease are numbered, so that a repeat counts
// once. A job that reaches a limit by it loses its lease, and the run ends. other adds usage that the
// job cannot have to the sums of the tenant.
func (w *worker) spends(j *leasedJob, other func(ctx context.Context, u agent.Usage) error) func(ctx context.Context, u agent.Usage) error {
	var mu sync.Mutex
	last := int64(0)
	return func(ctx context.Context, u agent.Usage) error {
		mu.Lock() // the store counts an entry only if its number is above those before
		defer mu.Unlock()
		last++
		u.Seq = last
		beat := api.JobHeartbeat{ID: j.job.ID, LeaseEpoch: j.job.LeaseEpoch, LeaseMS: leaseTime.Milliseconds(), Usage: []agent.Usage{u}}
		var answers []api.JobOutcome
		err := w.repeat(ctx, func() (err error) {
			answers, err = w.i.broker.Heartbeat(ctx, j.queue.Tenant, []api.JobHeartbeat{beat})
			return err
		})
		if err != nil {
			return err
		}
		return w.spent(ctx, j, &answers[0], u, other)
	}
}

// spent takes the answer to a report of usage. The store has counted it also if the lease is lost. A
// job that is gone has no ledger, and other counts the usage. Errors: those of other, that of a refused
// report.
func (w *worker) spent(ctx context.Context, j *leasedJob, answer *api.JobOutcome, u agent.Usage, other func(ctx context.Context, u agent.Usage) error) error {
	switch {
	case answer.OK:
	case answer.Code == api.CodeJobLeaseLost:
		w.i.logger.Info("a job lost its lease when it reported usage", zap.String("tenant", j.queue.Tenant), zap.String("job_id", j.job.ID))
	case answer.Code == api.CodeJobNotFound:
		w.answered(j, answer)
		u.Seq = 0
		return other(ctx, u)
	default:
		return api.Errorf(answer.Code, "%s", answer.Message)
	}
	w.answered(j, answer)
	return nil
}

// repeat repeats a call while the store does not answer, until ctx ends.
func (*worker) repeat(ctx context.Context, call func() error) error {
	for pause := recordRetryMin; ; pause = min(2*pause, recordRetryMax) {
		err := call()
		if api.ErrorCode(err) != api.CodeStoreUnavailable || sleep.For(ctx, pause) != nil {
			return err
		}
	}
}
