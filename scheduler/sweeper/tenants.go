package sweeper

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/codesous/sous/storage"
)

// visitor looks after what one kind of record left at one kind of place. It is asked
// again for the same place until its piece is the end there.
type visitor interface {
	visit(ctx context.Context, at storage.FunctionPath, now time.Time, reads int, total *Counts) (piece, error)
}

// walkReads is what it costs to come to a place.
const walkReads = 1

// placeCourse is the course through all tenants, namespaces and functions. At each
// place all visitors of its kind have their turn.
type placeCourse struct {
	tenants                           *storage.Tenants
	ofTenant, ofNamespace, ofFunction []visitor

	next func() (storage.FunctionPath, error, bool) // nil between laps
	end  func()
	at   storage.FunctionPath
	left []visitor // who have not finished there
}

func (c *placeCourse) piece(ctx context.Context, now time.Time, reads int, total *Counts) (piece, error) {
	if len(c.left) == 0 {
		return c.walk(ctx, total)
	}
	p, err := c.left[0].visit(ctx, c.at, now, reads, total)
	if err != nil {
		err = fmt.Errorf("sweep %s: %w", placeName(c.at), err)
	}
	if storage.Fatal(ctx, err) {
		c.stop()
		return p, err
	}
	if p.end {
		c.left, p.end = c.left[1:], false
	}
	return p, err
}

// walk goes on to the next place.
func (c *placeCourse) walk(ctx context.Context, total *Counts) (piece, error) {
	if c.next == nil {
		// The walk outlives the step that begins it.
		c.next, c.end = iter.Pull2(c.tenants.Walk(context.WithoutCancel(ctx)))
	}
	at, err, more := c.next()
	if err != nil || !more {
		c.stop()
	}
	switch {
	case err != nil:
		return piece{reads: walkReads, end: true}, fmt.Errorf("walk tenants: %w", err)
	case !more:
		return piece{reads: walkReads, end: true}, nil
	case at.Namespace == "":
		total.Tenants++
		c.left = c.ofTenant
	case at.Function == "":
		c.left = c.ofNamespace
	default:
		total.Functions++
		c.left = c.ofFunction
	}
	c.at = at
	return piece{reads: walkReads}, nil
}

func (c *placeCourse) stop() {
	if c.end != nil {
		c.end()
	}
	c.next, c.end, c.left = nil, nil, nil
}

func placeName(at storage.FunctionPath) string {
	name := "tenant " + at.Tenant
	if at.Namespace != "" {
		name += "/" + at.Namespace
	}
	if at.Function != "" {
		name += "/" + at.Function
	}
	return name
}
