package feed

import (
	"context"
	"fmt"
	"time"

	"github.com/codesous/sous/storage/mirror"
)

// cursor is the position of a trim: behind a row of one table.
type cursor struct {
	activations bool
	row         int64
}

// room returns the error of a mirror that may not grow, nil if it may. If the file has its largest
// size, rows whose records are gone are removed first, with as many commands as may be sent in pause:
// no pass comes to them while nothing can be written.
func (f *Feed) room(ctx context.Context, pause time.Duration) error {
	err := f.mirror.Room(ctx)
	if !mirror.Oversize(err) {
		return err
	}
	for commands := 1 + int(pause.Seconds()*f.cfg.BusyRate); commands > 0; {
		sent, err := f.trim(ctx)
		if err != nil {
			return fmt.Errorf("remove rows from a full file: %w", err)
		}
		commands -= sent
		if f.trimmed == (cursor{}) { // all rows were read
			break
		}
	}
	return f.mirror.Room(ctx)
}

// trim removes those of the next rows whose records are gone. It returns the number of commands.
func (f *Feed) trim(ctx context.Context) (commands int, err error) {
	read := f.mirror.JobRows
	if f.trimmed.activations {
		read = f.mirror.ActivationRows
	}
	rows, err := read(ctx, nil, f.trimmed.row, pageSize)
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 {
		f.trimmed = cursor{activations: !f.trimmed.activations}
		return 1, nil
	}
	gone, commands, err := f.goneRows(ctx, rows)
	if err != nil {
		return commands, err
	}
	b := &mirror.Batch{}
	for i := range rows {
		switch {
		case !gone[i]:
		case f.trimmed.activations:
			b.Activations = append(b.Activations, mirror.Activation{Tenant: rows[i].Tenant, ID: rows[i].ID})
		default:
			b.Jobs = append(b.Jobs, mirror.Job{Tenant: rows[i].Tenant, ID: rows[i].ID})
		}
	}
	f.trimmed.row = rows[len(rows)-1].Row
	f.m.commands.WithLabelValues("trim").Add(float64(commands))
	if len(b.Jobs)+len(b.Activations) == 0 {
		return commands, nil
	}
	counts, err := f.mirror.Trim(ctx, b)
	f.m.applied(counts)
	return commands, err
}

// goneRows reports which of the rows of the table of the trim have no record.
func (f *Feed) goneRows(ctx context.Context, rows []mirror.Row) (gone []bool, commands int, err error) {
	if f.trimmed.activations {
		return f.gone(ctx, rows)
	}
	runs, commands, err := f.jobs.Runs(ctx, rows)
	gone = make([]bool, len(rows))
	for i := range runs {
		gone[i] = runs[i] == ""
	}
	return gone, commands, err
}
