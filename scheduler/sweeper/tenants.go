package sweeper

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/codesous/sous/storage"
)

// visitor looks for what crashes left in one kind of record of a tenant, a namespace or a
// function. It is called again for the same one until its chunk is the end; where it has got to,
// it remembers itself. reads is how many commands it may spend, about.
type visitor interface {
	visit(ctx context.Context, at storage.FunctionPath, now time.Time, reads int, total *Counts) (chunk, error)
}

// walkReads is the cost of finding the next tenant, namespace or function.
const walkReads = 1

// tenantWalker goes over all tenants, namespaces and functions, and calls the visitors of
// each, one after the other. An error does not end the walk, unless the store fails or the
// tenants cannot be read: it then begins again at the first tenant.
type tenantWalker struct {
	places                            func(context.Context) iter.Seq2[storage.FunctionPath, error]
	ofTenant, ofNamespace, ofFunction []visitor
	uncounted                         bool // its places are not in Counts

	cursor cursor[storage.FunctionPath]
	at     storage.FunctionPath // the function that is visited; a namespace or a tenant where the rest is ""
	left   []visitor            // that have not finished at
}

func (w *tenantWalker) chunk(ctx context.Context, now time.Time, reads int, total *Counts) (chunk, error) {
	if len(w.left) == 0 {
		return w.walk(ctx, total)
	}
	c, err := w.left[0].visit(ctx, w.at, now, reads, total)
	if err != nil {
		err = fmt.Errorf("sweep %s: %w", pathName(w.at), err)
	}
	if storage.Fatal(ctx, err) {
		w.stop()
		return c, err
	}
	if c.end {
		w.left, c.end = w.left[1:], false
	}
	return c, err
}

// walk moves to the next tenant, namespace or function. The iterator returns a tenant before its
// namespaces, and a namespace before its functions.
func (w *tenantWalker) walk(ctx context.Context, total *Counts) (chunk, error) {
	at, more, err := w.cursor.next(ctx, w.places)
	switch {
	case err != nil:
		return chunk{reads: walkReads, end: true}, fmt.Errorf("walk tenants: %w", err)
	case !more:
		return chunk{reads: walkReads, end: true}, nil
	case at.Namespace == "":
		w.left = w.ofTenant
	case at.Function == "":
		w.left = w.ofNamespace
	default:
		w.left = w.ofFunction
	}
	switch {
	case w.uncounted:
	case at.Namespace == "":
		total.Tenants++
	case at.Function != "":
		total.Functions++
	}
	w.at = at
	return chunk{reads: walkReads}, nil
}

func (w *tenantWalker) stop() {
	w.cursor.stop()
	w.left = nil
}

// pathName names a tenant, a namespace or a function in an error, for example
// "tenant t_acme01/shop/mail".
func pathName(at storage.FunctionPath) string {
	name := "tenant " + at.Tenant
	if at.Namespace != "" {
		name += "/" + at.Namespace
	}
	if at.Function != "" {
		name += "/" + at.Function
	}
	return name
}
