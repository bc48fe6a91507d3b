package cadenceworker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
)

// share returns this replica's part of the binding's status. The API adds up the counts of all
// replicas; one replica that is running makes the binding running.
func (b *binding) share(nowMS int64) api.BindingReplica {
	b.mu.Lock()
	defer b.mu.Unlock()
	state, reason := api.BindingStopped, ""
	switch stored := b.latest.Load(); {
	case !stored.Enabled:
		state = api.BindingDisabled
	case b.s.conn == nil:
		state, reason = api.BindingNoServer, "the replicas with the cadence role have no Cadence server configured (--cadence-addr)"
	case b.worker != nil:
		state, reason = b.worker.status()
		if state == api.BindingRunning {
			reason = b.problem
			if reason == "" {
				reason = b.worker.fewerPollers()
			}
		}
	}
	return api.BindingReplica{Replica: b.s.replica, ReportedAtMS: nowMS, BindingCounts: api.BindingCounts{
		State: state, Reason: reason, LastPollMS: b.counts.lastPollMS.Load(),
		Taken: b.counts.taken.Load(), Completed: b.counts.completed.Load(), Failed: b.counts.failed.Load(),
		Cancelled: b.counts.cancelled.Load(), InFlight: b.counts.inFlight.Load(),
	}}
}

// report stores the status of the bindings until ctx ends.
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
			s.logger.Warn("storing the status of worker bindings failed", zap.Error(err))
		}
	}
}

// reportOnce stores the shares that changed, and those whose report would expire. Shares are not
// exact: those of a replica that dies stay until they expire.
func (s *Supervisor) reportOnce(ctx context.Context) error {
	nowMS := s.store.NowMS()
	var due []*binding
	var reports []bindings.Report
	var first []storage.BindingPath
	for _, b := range s.currentBindings() {
		share := b.share(nowMS)
		if b.lastReport.BindingCounts == share.BindingCounts && nowMS-b.lastReport.ReportedAtMS < bindings.ReportInterval.Milliseconds() {
			continue
		}
		if b.lastReport.ReportedAtMS == 0 {
			first = append(first, b.path)
		}
		due = append(due, b)
		reports = append(reports, bindings.Report{Path: b.path, Share: share})
	}
	if err := s.bindings.Report(ctx, reports); err != nil {
		return err
	}
	for i, b := range due {
		b.lastReport = reports[i].Share
	}
	// Reports of dead replicas are removed, so that they do not accumulate.
	return s.bindings.Prune(ctx, first)
}
