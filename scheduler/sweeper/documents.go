package sweeper

import (
	"context"
	"fmt"
	"time"

	"github.com/codesous/sous/queue/repair"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
)

// The kinds of repairs of documents, as metrics name them.
const (
	repairDocumentUse    = "document_use"    // the counts of a namespace differed from what it holds
	repairDocumentTenant = "document_tenant" // the counts of a tenant were
	repairDocumentIndex  = "document_index"  // the index of a namespace named documents that do not exist
)

const (
	// expireReads, recountReads and listReads are the costs of the kinds of chunks.
	expireReads  = 3
	recountReads = 4 // a page of records with their values
	listReads    = 3
	// recountPages bounds the pages of one namespace that a pass counts. The next pass counts
	// the pages behind them.
	recountPages = 64
)

// documentWalker goes over all tenants that have documents. It removes documents that have
// expired, and counts what each namespace and each tenant holds. For each tenant:
//
//	walk → expire, until none is due → list an install → recount its namespaces, a page each
//	     → list the next install → … → recountTenant → walk
//
// Counts can be too high after a crash, never too low, but for schemas of an earlier release. A
// recount is spread over passes: the store remembers the key that it has reached, so any replica
// continues it.
type documentWalker struct {
	s         *Sweeper
	documents *documents.Repository
	tenants   *storage.Tenants

	cursor cursor[string]
	tenant string // whose documents are looked at, "" between two tenants

	expired bool                   // the tenant's expired documents are removed
	listed  bool                   // the namespaces of all its installs were in paths
	after   string                 // the last of its installs that was
	paths   []storage.DocumentPath // namespaces of an install that are still to be counted
	pages   int                    // of the first of paths that were counted
}

func (w *documentWalker) chunk(ctx context.Context, now time.Time, _ int, total *Counts) (c chunk, err error) {
	switch {
	case w.tenant == "":
		return w.walk(ctx)
	case !w.expired:
		c, err = w.expire(ctx, now, total)
	case len(w.paths) > 0:
		c, err = w.recount(ctx, now, total)
	case !w.listed:
		c, err = w.list(ctx)
	default:
		c, err = w.recountTenant(ctx, total)
	}
	if err != nil {
		err = fmt.Errorf("sweep documents of %s: %w", w.tenant, err)
		w.tenant = "" // the other tenants have their turn
	}
	if storage.Fatal(ctx, err) {
		w.stop()
	}
	return c, err
}

// walk moves to the next tenant.
func (w *documentWalker) walk(ctx context.Context) (chunk, error) {
	tenant, more, err := w.cursor.next(ctx, w.tenants.WithDocuments)
	c := chunk{reads: walkReads, end: err != nil || !more}
	if err != nil {
		return c, fmt.Errorf("walk tenants with documents: %w", err)
	}
	w.tenant, w.expired, w.listed, w.after, w.paths, w.pages = tenant, false, false, "", nil, 0
	return c, nil
}

// expire removes documents of the tenant that have expired at now, a bounded number in a chunk.
func (w *documentWalker) expire(ctx context.Context, now time.Time, total *Counts) (chunk, error) {
	n, more, err := w.documents.ExpireDue(ctx, w.tenant, now.UnixMilli(), documents.MaxSteps)
	total.Expired += n
	w.expired = !more
	return chunk{reads: expireReads + n, busy: n > 0}, err
}

// list reads the namespaces of the tenant's next install, all of them.
func (w *documentWalker) list(ctx context.Context) (chunk, error) {
	c := chunk{reads: listReads}
	installs, next, err := w.documents.Installs(ctx, w.tenant, w.after, 1)
	if err != nil {
		return c, err
	}
	w.after, w.listed = next, next == ""
	for _, install := range installs {
		namespaces, err := w.documents.Namespaces(ctx, w.tenant, install.Install)
		if err != nil {
			return c, err
		}
		for _, ns := range namespaces {
			w.paths = append(w.paths, storage.DocumentPath{Tenant: w.tenant, Install: install.Install, Namespace: ns.Name})
		}
	}
	return c, nil
}

// recount counts a page of the first namespace in paths. It leaves the namespace when all of its
// documents were counted, or after recountPages.
func (w *documentWalker) recount(ctx context.Context, now time.Time, total *Counts) (chunk, error) {
	path := w.paths[0]
	out, err := w.documents.Recount(ctx, path, now.UnixMilli())
	w.pages++
	if out.Done || w.pages == recountPages {
		w.paths, w.pages = w.paths[1:], 0
	}
	found := w.drifted(total, repairDocumentUse, path, out.Drift, "it holds less than was counted")
	if out.Dangling > 0 {
		found = true
		w.repaired(total, repairDocumentIndex, path, fmt.Sprintf("%d keys", out.Dangling), "its index named documents that do not exist")
	}
	return chunk{reads: recountReads, busy: found}, err
}

// recountTenant sums up the counts of the tenant's namespaces, one install in each chunk, and
// corrects those of the tenant in the last.
func (w *documentWalker) recountTenant(ctx context.Context, total *Counts) (chunk, error) {
	out, err := w.documents.RecountTenant(ctx, w.tenant)
	path := storage.DocumentPath{Tenant: w.tenant}
	if out.Done {
		w.tenant = ""
	}
	found := w.drifted(total, repairDocumentTenant, path, out.Drift, "its namespaces hold less than was counted")
	return chunk{reads: recountReads, busy: found}, err
}

// drifted records the repair of a count, and reports whether there was one.
func (w *documentWalker) drifted(total *Counts, kind string, path storage.DocumentPath, drift documents.Count, reason string) bool {
	if drift == (documents.Count{}) {
		return false
	}
	if drift.Bytes < 0 {
		reason = "its schema was not counted"
	}
	w.repaired(total, kind, path, fmt.Sprintf("%d records, %d bytes", drift.Records, drift.Bytes), reason)
	return true
}

// repaired counts and logs a repair. Repair names an install as namespace, and a namespace of
// documents as queue.
func (w *documentWalker) repaired(total *Counts, kind string, path storage.DocumentPath, what, reason string) {
	w.s.repaired(repair.Repair{Kind: kind, Tenant: path.Tenant, Namespace: path.Install, Queue: path.Namespace, ID: what, Reason: reason}, total)
}

func (w *documentWalker) stop() {
	w.cursor.stop()
	w.tenant = ""
}
