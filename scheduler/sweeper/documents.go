package sweeper

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
)

// The kinds of repairs of documents, as metrics name them.
const (
	repairDocumentUse    = "document_use"    // a namespace was said to hold more than it does
	repairDocumentTenant = "document_tenant" // a tenant was
	repairDocumentIndex  = "document_index"  // keys in a namespace's list had no document
)

// What a piece of the course costs, in reads, and how far one goes.
const (
	expireReads  = 3
	recountReads = 4 // a page of records with their values
	recountPages = 64
	listReads    = 3
)

// documentCourse is the course through all tenants that have documents. It removes those
// that have expired, and counts what each namespace and each tenant holds. A namespace's
// recount goes on where it stopped: of a large one, a lap counts recountPages pages.
type documentCourse struct {
	s         *Sweeper
	documents *documents.Repository
	tenants   *storage.Tenants

	next   func() (string, error, bool) // nil between laps
	end    func()
	tenant string // under way, "" between two
	// How far the tenant has come.
	expired bool
	listed  bool // all of its installs
	after   string
	paths   []storage.DocumentPath // that are left of an install
	pages   int                    // of the first of them, counted
}

func (c *documentCourse) piece(ctx context.Context, now time.Time, _ int, total *Counts) (p piece, err error) {
	switch {
	case c.tenant == "":
		return c.walk(ctx)
	case !c.expired:
		p, err = c.expire(ctx, now, total)
	case len(c.paths) > 0:
		p, err = c.recount(ctx, now, total)
	case !c.listed:
		p, err = c.list(ctx)
	default:
		p, err = c.recountTenant(ctx, total)
	}
	if err != nil {
		err = fmt.Errorf("sweep documents of %s: %w", c.tenant, err)
		c.tenant = "" // it keeps the course from no other
	}
	if storage.Fatal(ctx, err) {
		c.stop()
	}
	return p, err
}

// walk goes on to the next tenant.
func (c *documentCourse) walk(ctx context.Context) (piece, error) {
	if c.next == nil {
		// The walk outlives the step that begins it.
		c.next, c.end = iter.Pull2(c.tenants.WithDocuments(context.WithoutCancel(ctx)))
	}
	p := piece{reads: walkReads}
	tenant, err, more := c.next()
	if err != nil || !more {
		c.stop()
		p.end = true
	}
	if err != nil {
		return p, fmt.Errorf("walk tenants with documents: %w", err)
	}
	c.tenant, c.expired, c.listed, c.after, c.paths, c.pages = tenant, false, false, "", nil, 0
	return p, nil
}

func (c *documentCourse) expire(ctx context.Context, now time.Time, total *Counts) (piece, error) {
	n, more, err := c.documents.ExpireDue(ctx, c.tenant, now.UnixMilli(), documents.MaxSteps)
	total.Expired += n
	c.expired = !more
	return piece{reads: expireReads + n, busy: n > 0}, err
}

// list goes on to the next install.
func (c *documentCourse) list(ctx context.Context) (piece, error) {
	p := piece{reads: listReads}
	installs, next, err := c.documents.Installs(ctx, c.tenant, c.after, 1)
	if err != nil {
		return p, err
	}
	c.after, c.listed = next, next == ""
	for _, install := range installs {
		namespaces, err := c.documents.Namespaces(ctx, c.tenant, install.Install)
		if err != nil {
			return p, err
		}
		for _, ns := range namespaces {
			c.paths = append(c.paths, storage.DocumentPath{Tenant: c.tenant, Install: install.Install, Namespace: ns.Name})
		}
	}
	return p, nil
}

func (c *documentCourse) recount(ctx context.Context, now time.Time, total *Counts) (piece, error) {
	path := c.paths[0]
	out, err := c.documents.Recount(ctx, path, now.UnixMilli())
	c.pages++
	if out.Done || c.pages == recountPages {
		c.paths, c.pages = c.paths[1:], 0
	}
	found := c.mended(total, repairDocumentUse, path, out.Drift, "it holds less than was counted")
	if out.Dangling > 0 {
		found = true
		c.repaired(total, repairDocumentIndex, path, fmt.Sprintf("%d keys", out.Dangling), "its list named documents that are not there")
	}
	return piece{reads: recountReads, busy: found}, err
}

func (c *documentCourse) recountTenant(ctx context.Context, total *Counts) (piece, error) {
	out, err := c.documents.RecountTenant(ctx, c.tenant)
	path := storage.DocumentPath{Tenant: c.tenant}
	if out.Done {
		c.tenant = ""
	}
	found := c.mended(total, repairDocumentTenant, path, out.Drift, "its namespaces hold less than was counted")
	return piece{reads: recountReads, busy: found}, err
}

// mended notes a count that was wrong, if it was.
func (c *documentCourse) mended(total *Counts, kind string, path storage.DocumentPath, drift documents.Count, reason string) bool {
	if drift == (documents.Count{}) {
		return false
	}
	c.repaired(total, kind, path, fmt.Sprintf("%d records, %d bytes", drift.Records, drift.Bytes), reason)
	return true
}

// repaired counts and logs a repair.
func (c *documentCourse) repaired(total *Counts, kind string, path storage.DocumentPath, what, reason string) {
	r := queue.Repair{Kind: kind, Tenant: path.Tenant, Namespace: path.Install, Queue: path.Namespace, ID: what, Reason: reason}
	total.Repairs = append(total.Repairs, r)
	c.s.mended(r)
}

func (c *documentCourse) stop() {
	if c.end != nil {
		c.end()
	}
	c.next, c.end, c.tenant = nil, nil, ""
}
