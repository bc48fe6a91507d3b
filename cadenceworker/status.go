package cadenceworker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
)

// share is this replica's part of the binding's status.
func (b *binding) share(nowMS int64) api.BindingReplica {
	b.mu.Lock()
	defer b.mu.Unlock()
	state, reason := api.BindingStopped, ""
	switch stored := b.latest.Load(); {
	case !stored.Enabled:
		state = api.BindingDisabled
	case b.s.conn == nil:
		state, reason = api.BindingNoServer, "the replicas with the cadence role know no Cadence server (--cadence-addr)"
	case b.worker != nil:
		if state, reason = b.worker.standing(); state == api.BindingRunning {
			reason = b.wrong
		}
	}
	return api.BindingReplica{Replica: b.s.replica, ReportedAtMS: nowMS, BindingCounts: api.BindingCounts{
		State: state, Reason: reason, LastPollMS: b.counts.lastPollMS.Load(),
		Taken: b.counts.taken.Load(), Completed: b.counts.completed.Load(), Failed: b.counts.failed.Load(),
		Cancelled: b.counts.cancelled.Load(), InFlight: b.counts.inFlight.Load(),
	}}
}

// report stores how the bindings get on, until ctx ends.
func (s *Supervisor) report(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.reportOnce(ctx); err != nil && ctx.Err() == nil {
			s.logger.Warn("the status of worker bindings was not stored", zap.Error(err))
		}
	}
}

// reportOnce stores the shares that changed, and those whose report grows old.
func (s *Supervisor) reportOnce(ctx context.Context) error {
	nowMS := s.store.NowMS()
	s.mu.Lock()
	bound := make([]*binding, 0, len(s.bound))
	for _, b := range s.bound {
		bound = append(bound, b)
	}
	s.mu.Unlock()
	var due []*binding
	var reports []bindings.Report
	var first []storage.BindingPath
	for _, b := range bound {
		share := b.share(nowMS)
		if b.told.BindingCounts == share.BindingCounts && nowMS-b.told.ReportedAtMS < bindings.ReportInterval.Milliseconds() {
			continue
		}
		if b.told.ReportedAtMS == 0 {
			first = append(first, b.path)
		}
		due = append(due, b)
		reports = append(reports, bindings.Report{Path: b.path, Share: share})
	}
	if err := s.bindings.Report(ctx, reports); err != nil {
		return err
	}
	for i, b := range due {
		b.told = reports[i].Share
	}
	// Replicas that die one after the other leave no more than the last ones' reports.
	return s.bindings.Prune(ctx, first)
}
