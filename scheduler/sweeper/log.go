package sweeper

import (
	"go.uber.org/zap"

	"github.com/codesous/sous/queue"
)

// note adds what a look found to total, and logs it.
func (s *Sweeper) note(look queue.Look, total *Counts) piece {
	total.Repairs = append(total.Repairs, look.Repairs...)
	for _, r := range look.Repairs {
		s.mended(r)
	}
	for _, what := range look.Unreadable {
		s.cannotRead("job " + what)
	}
	return piece{reads: look.Reads, busy: look.Busy || len(look.Repairs) > 0, end: look.End}
}

// mended logs one repair.
func (s *Sweeper) mended(r queue.Repair) {
	log := s.logger.Warn
	if r.Kind == queue.RepairExpiry { // acknowledged jobs leave these, too
		log = s.logger.Debug
	}
	log("a leftover of a crash was mended", zap.String("kind", r.Kind), zap.String("tenant", r.Tenant),
		zap.String("namespace", r.Namespace), zap.String("what", r.Queue), zap.String("id", r.ID), zap.String("reason", r.Reason))
}

// cannotRead logs a record that cannot be read, once.
func (s *Sweeper) cannotRead(what string) {
	if s.told.first(what) {
		s.logger.Error("a record cannot be read, and is passed over", zap.String("record", what))
	}
}

// toldMax bounds what a sweeper remembers to have told.
const toldMax = 10_000

// told remembers what was logged.
type told map[string]struct{}

func (t *told) first(what string) bool {
	if _, known := (*t)[what]; known {
		return false
	}
	if *t == nil || len(*t) >= toldMax {
		*t = told{}
	}
	(*t)[what] = struct{}{}
	return true
}
