package documents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// documentCuts is the number of writes after which scripts are interrupted; the longest
// script publishes 20 changes.
const documentCuts = 36

// TestDocumentScriptsMayBeCut interrupts each script after each of its writes. The remaining
// records are sound and atomic, the repeated call completes them, and a recount corrects the
// counters.
func TestDocumentScriptsMayBeCut(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.AllBackends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			whole := storagetest.Open(t, cfg)
			var cuts []*documents.Repository
			for k := range documentCuts {
				cfg.ScriptPrelude = storagetest.CutAfter(k)
				cuts = append(cuts, documents.NewRepository(storagetest.Open(t, cfg)))
			}
			for name, op := range documentOperations() {
				cutDocuments(t, name, op, whole, cuts)
			}
		})
	}
}

// documentOperation prepares a namespace, and makes a call, which may be repeated. atomic
// is for calls of a single script that writes documents.
type documentOperation struct {
	prepare func(d *harness)
	call    func(d *harness, on *documents.Repository) error
	atomic  bool
}

func writing(steps ...documents.Step) func(d *harness, on *documents.Repository) error {
	return func(d *harness, on *documents.Repository) error {
		_, err := on.Write(d.t.Context(), d.path, steps, d.q, "", d.now)
		return err
	}
}

// some is a namespace with documents, two of which expire at 2,000,000.
func some(d *harness) {
	d.mustWrite(put("a", `"one"`), put("b", `"two"`), until(2_000_000, put("c", `"three"`)), until(2_000_000, put("d", `"four"`)))
	other := *d
	other.path.Install, other.path.Namespace = "fn.aaa.aaa", "other"
	other.mustWrite(put("a", `"elsewhere"`))
	d.auditCut("before")
	d.audit("before")
}

// halfCounted is some in the middle of a recount of everything.
func halfCounted(d *harness) {
	var steps []documents.Step
	for i := range 40 {
		steps = append(steps, put(fmt.Sprintf("0%02d", i), "1"))
	}
	d.mustWrite(steps...)
	some(d)
	if out, err := d.Recount(d.t.Context(), d.path, 0); err != nil || out.Done {
		d.t.Fatalf("Recount: got %+v and error %v, want a walk under way", out, err)
	}
	for range 2 {
		if out, err := d.RecountTenant(d.t.Context(), d.path.Tenant); err != nil || out.Done {
			d.t.Fatalf("RecountTenant: got %+v and error %v, want a walk under way", out, err)
		}
	}
}

func documentOperations() map[string]documentOperation {
	later := func(op documentOperation) documentOperation {
		prepare := op.prepare
		op.prepare = func(d *harness) { prepare(d); d.now = 3_000_000 }
		return op
	}
	var bulk []documents.Step
	for i := range 20 {
		bulk = append(bulk, put(fmt.Sprintf("bulk %d", i), "1"))
	}
	mixed := writing(put("a", `"longer than before"`), until(4_000_000, put("b", "1")), until(1_500_000, put("c", "1")), remove("d"), until(5_000_000, put("e", `"five"`)))
	return map[string]documentOperation{
		"first put":        {prepare: func(*harness) {}, call: writing(until(2_000_000, put("a", "1"))), atomic: true},
		"put":              {prepare: some, call: writing(put("z", "1")), atomic: true},
		"overwrite":        {prepare: some, call: writing(put("a", "1")), atomic: true},
		"overwrite longer": {prepare: some, call: writing(put("a", `"longer than before"`)), atomic: true},
		"no more expiry":   {prepare: some, call: writing(put("c", "1")), atomic: true},
		"sooner":           {prepare: some, call: writing(until(1_500_000, put("c", "1"))), atomic: true},
		"later":            {prepare: some, call: writing(until(2_500_000, put("c", "1"))), atomic: true},
		"over expired":     later(documentOperation{prepare: some, call: writing(until(9_000_000, put("c", "1"))), atomic: true}),
		"bulk":             {prepare: some, call: writing(bulk...), atomic: true},
		"delete":           {prepare: some, call: writing(remove("a"), remove("c")), atomic: true},
		"mixed":            {prepare: some, call: mixed, atomic: true},
		"mixed, walked":    {prepare: halfCounted, call: mixed, atomic: true},
		"delete, walked":   {prepare: halfCounted, call: writing(remove("000"), remove("a"), remove("001")), atomic: true},
		"put, walked":      {prepare: halfCounted, call: writing(put("0000", "1"), put("zzz", "1"), put("002", `"longer"`)), atomic: true},
		"expire": later(documentOperation{prepare: some, call: func(d *harness, on *documents.Repository) error {
			for more := true; more; {
				var err error
				_, more, err = on.ExpireDue(d.t.Context(), d.path.Tenant, d.now, 10)
				if err != nil {
					return err
				}
			}
			return nil
		}, atomic: false}),
		"clear": {prepare: some, call: func(d *harness, on *documents.Repository) error {
			_, more, err := on.Clear(d.t.Context(), d.path, 1_000)
			if err == nil && more {
				err = errors.New("not cleared")
			}
			return err
		}, atomic: false},
		"delete install": {prepare: some, call: func(d *harness, on *documents.Repository) error {
			_, more, err := on.DeleteInstall(d.t.Context(), d.path.Tenant, d.path.Install, 1_000)
			if err == nil && more {
				err = errors.New("not deleted")
			}
			return err
		}, atomic: false},
		"schema": {prepare: func(*harness) {}, call: func(d *harness, on *documents.Repository) error {
			_, err := on.SetSchema(d.t.Context(), d.path, []byte(`{}`), documents.Quota{}, d.now)
			return err
		}, atomic: false},
		"schema, walked": {prepare: halfCounted, call: func(d *harness, on *documents.Repository) error {
			_, err := on.SetSchema(d.t.Context(), d.path, []byte(`{"type":"string"}`), documents.Quota{}, d.now)
			return err
		}, atomic: false},
		"shorter schema": {prepare: withSchema(halfCounted), call: func(d *harness, on *documents.Repository) error {
			_, err := on.SetSchema(d.t.Context(), d.path, []byte(`{}`), documents.Quota{}, d.now)
			return err
		}, atomic: false},
		"no more schema": {prepare: withSchema(halfCounted), call: func(d *harness, on *documents.Repository) error {
			_, err := on.DeleteSchema(d.t.Context(), d.path)
			return err
		}, atomic: false},
		"clear with a schema": {prepare: withSchema(some), call: func(d *harness, on *documents.Repository) error {
			_, more, err := on.Clear(d.t.Context(), d.path, 1_000)
			if err == nil && more {
				err = errors.New("not cleared")
			}
			return err
		}, atomic: false},
		"recount": {prepare: drifted, call: func(d *harness, on *documents.Repository) error {
			return d.steps(func() (documents.Recount, error) { return on.Recount(d.t.Context(), d.path, 0) })
		}, atomic: false},
		"recount tenant": {prepare: drifted, call: func(d *harness, on *documents.Repository) error {
			return d.steps(func() (documents.Recount, error) { return on.RecountTenant(d.t.Context(), d.path.Tenant) })
		}, atomic: false},
	}
}

// withSchema adds a schema to a namespace.
func withSchema(prepare func(d *harness)) func(d *harness) {
	return func(d *harness) {
		prepare(d)
		if _, err := d.SetSchema(d.t.Context(), d.path, []byte(`{"type":"string"}`), documents.Quota{}, d.now); err != nil {
			d.t.Fatalf("SetSchema: %v", err)
		}
	}
}

// steps takes some steps of a recount, through its end.
func (d *harness) steps(step func() (documents.Recount, error)) error {
	for range 4 {
		if _, err := step(); err != nil {
			return err
		}
	}
	return nil
}

// drifted is a namespace with what crashes leave: counts that are too high, entries
// without records, and a record that was going.
func drifted(d *harness) {
	ctx, c := d.t.Context(), d.s.Client()
	halfCounted(d)
	d.recount()
	for _, key := range []string{"0000", "zzz"} {
		c.ZAdd(ctx, d.key(d.path.Install, d.path.Namespace, "index"), redis.Z{Member: key})
	}
	c.HSet(ctx, d.key(d.path.Install, d.path.Namespace, "records"), "zzz", "")
	d.drift(7)
}

// drift raises the counters by n records and n bytes, as an interrupted write does.
func (d *harness) drift(n int64) {
	d.t.Helper()
	for _, counter := range []struct{ key, field string }{
		{d.key(d.path.Install, "usage"), d.path.Namespace + ":r"}, {d.key(d.path.Install, "usage"), d.path.Namespace + ":b"},
		{d.key("usage"), "r"}, {d.key("usage"), "b"},
	} {
		if err := d.s.Client().HIncrBy(d.t.Context(), counter.key, counter.field, n).Err(); err != nil {
			d.t.Fatalf("HIncrBy: %v", err)
		}
	}
}

// cutDocuments makes an operation's call on stores that cut each script after ever more
// writes, until none is cut any more.
func cutDocuments(t *testing.T, name string, op documentOperation, s *storage.Store, cuts []*documents.Repository) {
	t.Helper()
	whole := newHarness(t, s)
	op.prepare(whole)
	before := whole.values()
	if err := op.call(whole, whole.Repository); err != nil {
		t.Fatalf("%s: call: %v", name, err)
	}
	want, told := whole.values(), whole.told()
	if op.atomic && !strings.Contains(name, "expired") && cmp.Equal(before, want) {
		t.Errorf("%s: got no change of any document, want one", name)
	}
	for k, cut := range cuts {
		what := fmt.Sprintf("%s, cut after %d writes", name, k)
		d := newHarness(t, s)
		op.prepare(d)
		err := op.call(d, cut)
		if err == nil {
			if k == 0 {
				t.Errorf("%s: got a script without writes, want at least 1", name)
			}
			return
		}
		if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "CUT") {
			t.Fatalf("%s: got error %v, want the CUT of the prelude", what, err)
		}
		d.auditCut(what)
		switch left := d.values(); {
		case !op.atomic || cmp.Equal(left, before):
		case !cmp.Equal(left, want):
			t.Errorf("%s: got %v, want all of the change or none", what, left)
		default:
			if diff := cmp.Diff(told, d.told()); diff != "" {
				t.Errorf("%s: got the change made, but another feed (-want +got):\n%s", what, diff)
			}
		}
		if err := op.call(d, d.Repository); err != nil {
			t.Errorf("%s, again: %v", what, err)
		}
		if diff := cmp.Diff(want, d.values()); diff != "" {
			t.Errorf("%s, repeated: documents differ (-want +got):\n%s", what, diff)
		}
		d.auditCut(what + ", again")
		d.recount()
		d.audit(what + ", again, and counted")
		d.noRemains(what)
	}
	t.Errorf("%s: got more than %d writes, want at most as many", name, len(cuts))
}

// values are what a reader finds at the tests' time: documents and when they expire.
func (d *harness) values() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	items, next, err := d.Page(d.t.Context(), d.path, documents.Query{Limit: api.MaxDocumentPage, Values: true}, d.now)
	if err != nil || next != "" {
		d.t.Fatalf("Page: got next %q and error %v, want a single page", next, err)
	}
	for _, item := range items {
		out[item.Key] = fmt.Sprintf("%s until %d", item.Value, item.ExpiresAtMS)
	}
	return out
}

// told is what the feed says.
func (d *harness) told() (told []string) {
	d.t.Helper()
	for _, c := range d.changes(0, 1_000).Changes {
		told = append(told, fmt.Sprint(c.ID, " ", c.Op, " ", c.Key, " ", c.Revision))
	}
	return told
}

// noRemains: the index holds nothing but records, and no record is empty, once all was
// repeated and counted.
func (d *harness) noRemains(what string) {
	d.t.Helper()
	in := func(name string) string { return d.key(d.path.Install, d.path.Namespace, name) }
	records, err := d.s.Client().HGetAll(d.t.Context(), in("records")).Result()
	if err != nil {
		d.t.Fatalf("HGetAll: %v", err)
	}
	for key, raw := range records {
		if !json.Valid([]byte(raw)) {
			d.t.Errorf("%s: document %q: got record %q, want JSON", what, key, raw)
		}
	}
	index, err := d.s.Client().ZCard(d.t.Context(), in("index")).Result()
	if err != nil || int(index) != len(records) {
		d.t.Errorf("%s: got %d entries in the index and error %v, want %d, the number of records", what, index, err, len(records))
	}
}
