package sweeper

import (
	"go.uber.org/zap"

	"github.com/codesous/sous/queue/repair"
)

// record adds what a repairer found to total, and logs it.
func (s *Sweeper) record(findings repair.Findings, total *Counts) chunk {
	total.Repairs = append(total.Repairs, findings.Repairs...)
	for _, r := range findings.Repairs {
		s.logRepair(r)
	}
	for _, what := range findings.Unreadable {
		s.logUnreadable("job " + what)
	}
	return chunk{reads: findings.Reads, busy: findings.Busy || len(findings.Repairs) > 0, end: findings.End}
}

// repaired counts a repair in total, and logs it.
func (s *Sweeper) repaired(r repair.Repair, total *Counts) {
	total.Repairs = append(total.Repairs, r)
	s.logRepair(r)
}

func (s *Sweeper) logRepair(r repair.Repair) {
	log := s.logger.Warn
	if r.Kind == repair.KindExpiry { // acknowledged jobs leave these, too: they are no sign of a crash
		log = s.logger.Debug
	}
	log("repaired what a crash left behind", zap.String("kind", r.Kind), zap.String("tenant", r.Tenant),
		zap.String("namespace", r.Namespace), zap.String("what", r.Queue), zap.String("id", r.ID), zap.String("reason", r.Reason))
}

// logUnreadable logs that a record cannot be read, once in the life of the process.
func (s *Sweeper) logUnreadable(record string) {
	if s.unreadable.add(record) {
		s.logger.Error("a record cannot be read; the sweeper skips it", zap.String("record", record))
	}
}

// maxLogged bounds the records that a sweeper remembers to have logged.
const maxLogged = 10_000

// logged is the set of records that were logged. When it is full it is emptied, so that a damaged
// record may be logged again. The zero value is ready to use.
type logged map[string]struct{}

// add adds a record, and reports whether it is new.
func (l *logged) add(record string) bool {
	if _, known := (*l)[record]; known {
		return false
	}
	if *l == nil || len(*l) >= maxLogged {
		*l = logged{}
	}
	(*l)[record] = struct{}{}
	return true
}
