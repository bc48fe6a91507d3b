package documents_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
)

// key is one of the store's keys of documents of the tenant: the parts behind it.
func (d *harness) key(parts ...string) string {
	tenant := d.path.Tenant
	if _, cluster := d.s.Client().(*redis.ClusterClient); cluster {
		tenant = "{" + tenant + "}"
	}
	return "cs:doc:" + tenant + ":" + strings.Join(parts, ":")
}

// truth counts the stored records of a namespace and the bytes of its schema, and checks the invariants that hold after
// any interrupted call.
func (d *harness) truth(what string, p storage.DocumentPath) (n documents.Count) {
	d.t.Helper()
	ctx, c := d.t.Context(), d.s.Client()
	in := func(name string) string { return d.key(p.Install, p.Namespace, name) }
	records, err := c.HGetAll(ctx, in("records")).Result()
	if err != nil {
		d.t.Fatalf("HGetAll: %v", err)
	}
	index, err := c.ZRange(ctx, in("index"), 0, -1).Result()
	if err != nil {
		d.t.Fatalf("ZRange: %v", err)
	}
	schema, err := c.StrLen(ctx, in("schema")).Result()
	if err != nil {
		d.t.Fatalf("StrLen: %v", err)
	}
	n.Bytes = schema
	listed := map[string]bool{}
	for _, key := range index {
		listed[key] = true
	}
	soonest, _ := c.ZScore(ctx, d.key("expiring"), p.Install+"/"+p.Namespace).Result()
	for key, raw := range records {
		if !listed[key] {
			d.t.Errorf("%s: got %q in no index, want it in one", what, key)
		}
		if raw == "" {
			continue
		}
		var r documents.Record
		if err := json.Unmarshal([]byte(raw), &r); err != nil {
			d.t.Fatalf("%s: %s: json.Unmarshal: %v", what, raw, err)
		}
		if want := int64(len(key) + len(r.Metadata) + len(r.Value)); want != r.Bytes {
			d.t.Errorf("%s: document %q: got %d bytes in its record, want %d", what, key, r.Bytes, want)
		}
		n.Records, n.Bytes = n.Records+1, n.Bytes+r.Bytes
		if r.ExpiresAtMS == 0 {
			continue
		}
		due, err := c.ZScore(ctx, in("expiry"), key).Result()
		if err != nil || int64(due) > r.ExpiresAtMS || soonest == 0 || soonest > due {
			d.t.Errorf("%s: document %q, which expires at %d: got it due at %v (error %v) and its namespace at %v, want neither later than that", what, key, r.ExpiresAtMS, due, err, soonest)
		}
	}
	return n
}

// stored holds the stored records of the tenant's namespaces, their sum, and the counters.
type stored struct {
	truth, used    map[storage.DocumentPath]documents.Count
	all, allOfUsed documents.Count
	tenant         documents.Count
}

func (d *harness) stored(what string) stored {
	d.t.Helper()
	ctx := d.t.Context()
	out := stored{truth: map[storage.DocumentPath]documents.Count{}, used: map[storage.DocumentPath]documents.Count{}}
	installs, _, err := d.Installs(ctx, d.path.Tenant, "", 100)
	if err != nil {
		d.t.Fatalf("Installs: %v", err)
	}
	for _, install := range installs {
		namespaces, err := d.Namespaces(ctx, d.path.Tenant, install.Install)
		if err != nil {
			d.t.Fatalf("Namespaces: %v", err)
		}
		for _, ns := range namespaces {
			p := storage.DocumentPath{Tenant: d.path.Tenant, Install: install.Install, Namespace: ns.Name}
			n := d.truth(what, p)
			out.truth[p], out.used[p] = n, ns.Use
			out.all.Records, out.all.Bytes = out.all.Records+n.Records, out.all.Bytes+n.Bytes
			out.allOfUsed.Records, out.allOfUsed.Bytes = out.allOfUsed.Records+ns.Use.Records, out.allOfUsed.Bytes+ns.Use.Bytes
		}
	}
	_, out.tenant, err = d.Use(ctx, d.path)
	if err != nil {
		d.t.Fatalf("Use: %v", err)
	}
	return out
}

// audit checks the state after uninterrupted calls: the counters equal the stored records.
func (d *harness) audit(what string) {
	d.t.Helper()
	s := d.stored(what)
	for p, n := range s.truth {
		if s.used[p] != n {
			d.t.Errorf("%s: %s/%s: got counts %+v, want %+v", what, p.Install, p.Namespace, s.used[p], n)
		}
	}
	if s.tenant != s.all {
		d.t.Errorf("%s: tenant: got counts %+v, want %+v", what, s.tenant, s.all)
	}
}

// auditCut checks what holds at every cut: no count is below what there is.
func (d *harness) auditCut(what string) {
	d.t.Helper()
	s := d.stored(what)
	for p, n := range s.truth {
		if u := s.used[p]; u.Records < n.Records || u.Bytes < n.Bytes {
			d.t.Errorf("%s: %s/%s: got counts %+v, want at least %+v", what, p.Install, p.Namespace, u, n)
		}
	}
	if s.tenant.Records < s.all.Records || s.tenant.Bytes < s.all.Bytes {
		d.t.Errorf("%s: tenant: got counts %+v, want at least %+v", what, s.tenant, s.all)
	}
}

// recount ends the walks that are under way and takes one whole one, of every namespace
// and of the tenant.
func (d *harness) recount() {
	d.t.Helper()
	paths := []storage.DocumentPath{}
	for p := range d.stored("before a recount").truth {
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(a, b storage.DocumentPath) int {
		return strings.Compare(a.Install+"/"+a.Namespace, b.Install+"/"+b.Namespace)
	})
	for range 2 {
		for _, p := range paths {
			d.walk(func() (documents.Recount, error) { return d.Recount(d.t.Context(), p, 0) })
		}
		d.walk(func() (documents.Recount, error) { return d.RecountTenant(d.t.Context(), d.path.Tenant) })
	}
}

func (d *harness) walk(step func() (documents.Recount, error)) {
	d.t.Helper()
	for n := 0; ; n++ {
		out, err := step()
		if err != nil || n > 10_000 {
			d.t.Fatalf("recount: got %d steps without an end and error %v, want at most 10000", n, err)
		}
		if out.Done {
			return
		}
	}
}
