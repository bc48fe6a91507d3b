package sweeper

import (
	"context"
	"iter"
)

// cursor is the position of a walker in a sequence that a pass goes over once. The zero cursor
// is at the beginning.
type cursor[T any] struct {
	pull func() (T, error, bool) // nil between passes
	end  func()
}

// next returns the next value of the pass, which begins with the values of walk. After an
// error, and at the end, where more is false, the following pass begins.
func (c *cursor[T]) next(ctx context.Context, walk func(context.Context) iter.Seq2[T, error]) (at T, more bool, err error) {
	if c.pull == nil {
		// The iterator outlives the step that creates it.
		c.pull, c.end = iter.Pull2(walk(context.WithoutCancel(ctx)))
	}
	at, err, more = c.pull()
	if err != nil || !more {
		c.stop()
	}
	return at, more, err
}

// stop ends the pass. It may be called between passes.
func (c *cursor[T]) stop() {
	if c.end != nil {
		c.end()
	}
	c.pull, c.end = nil, nil
}
