package documents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// harness is a namespace of documents to test on.
type harness struct {
	*documents.Repository
	t    *testing.T
	s    *storage.Store
	path storage.DocumentPath
	now  int64
	q    documents.Quota
}

func newHarness(t *testing.T, s *storage.Store) *harness {
	t.Helper()
	return &harness{
		Repository: documents.NewRepository(s), t: t, s: s, now: 1_000_000,
		path: storage.DocumentPath{Tenant: storagetest.Tenant(t), Install: "fn.payments.reconcile", Namespace: "settings"},
	}
}

func (d *harness) write(steps ...documents.Step) ([]documents.Record, error) {
	return d.Write(d.t.Context(), d.path, steps, d.q, "", d.now)
}

func (d *harness) mustWrite(steps ...documents.Step) []documents.Record {
	d.t.Helper()
	out, err := d.write(steps...)
	if err != nil {
		d.t.Fatalf("write: %v", err)
	}
	return out
}

func (d *harness) page(q documents.Query) (keys []string, next string) {
	d.t.Helper()
	items, next, err := d.Page(d.t.Context(), d.path, q, d.now)
	if err != nil {
		d.t.Fatalf("Page: %v", err)
	}
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return keys, next
}

func put(key, value string) documents.Step {
	return documents.Step{Op: api.DocumentStepPut, Key: key, Value: json.RawMessage(value)}
}

func remove(key string) documents.Step {
	return documents.Step{Op: api.DocumentStepDelete, Key: key}
}

func check(key string) documents.Step {
	return documents.Step{Op: api.DocumentStepCheck, Key: key}
}

func having(revision int64, step documents.Step) documents.Step {
	step.If = &revision
	return step
}

func until(ms int64, step documents.Step) documents.Step {
	step.ExpiresAtMS = ms
	return step
}

// wrote is the reply of a write: revisions, or the codes of the items that failed.
func wrote(out []documents.Record, err error) string {
	var said []string
	for _, d := range out {
		said = append(said, fmt.Sprint(d.Revision))
	}
	if err != nil {
		said = append(said, string(api.ErrorCode(err)))
		if e := (*api.Error)(nil); errors.As(err, &e) {
			for _, item := range e.Items {
				said = append(said, fmt.Sprintf("%d:%s", item.Index, item.Code))
			}
			if e.Quota != nil {
				said = append(said, fmt.Sprintf("%s %s %d/%d", e.Quota.Scope, e.Quota.Unit, e.Quota.Used, e.Quota.Limit))
			}
		}
	}
	return strings.Join(said, " ")
}

// TestWritesOfDocuments: what each write answers and leaves, beginning with a at revision
// 2, b at revision 1, and old at revision 1 but expired.
func TestWritesOfDocuments(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		steps  []documents.Step
		answer string
		left   string // key@revision=value
		feed   string
	}{
		"create":           {[]documents.Step{put("c", "3")}, "1", "a@2=2 b@1=1 c@1=3", "put c 1"},
		"overwrite":        {[]documents.Step{put("a", "3")}, "3", "a@3=3 b@1=1", "put a 3"},
		"at its revision":  {[]documents.Step{having(2, put("a", "3"))}, "3", "a@3=3 b@1=1", "put a 3"},
		"at another":       {[]documents.Step{having(1, put("a", "3"))}, "REVISION_MISMATCH 0:REVISION_MISMATCH", "a@2=2 b@1=1", ""},
		"only new, is":     {[]documents.Step{having(0, put("c", "3"))}, "1", "a@2=2 b@1=1 c@1=3", "put c 1"},
		"only new, is not": {[]documents.Step{having(0, put("a", "3"))}, "REVISION_MISMATCH 0:REVISION_MISMATCH", "a@2=2 b@1=1", ""},
		"missing":          {[]documents.Step{having(1, put("c", "3"))}, "REVISION_MISMATCH 0:REVISION_MISMATCH", "a@2=2 b@1=1", ""},
		"over expired":     {[]documents.Step{put("old", "3")}, "1", "a@2=2 b@1=1 old@1=3", "put old 1"},
		"expired is none":  {[]documents.Step{having(1, put("old", "3"))}, "REVISION_MISMATCH 0:REVISION_MISMATCH", "a@2=2 b@1=1", ""},
		"new over expired": {[]documents.Step{having(0, put("old", "3"))}, "1", "a@2=2 b@1=1 old@1=3", "put old 1"},

		"delete":               {[]documents.Step{remove("a")}, "0", "b@1=1", "delete a 2"},
		"delete at":            {[]documents.Step{having(2, remove("a"))}, "0", "b@1=1", "delete a 2"},
		"delete at another":    {[]documents.Step{having(3, remove("a"))}, "REVISION_MISMATCH 0:REVISION_MISMATCH", "a@2=2 b@1=1", ""},
		"delete nothing":       {[]documents.Step{remove("c")}, "0", "a@2=2 b@1=1", ""},
		"delete nothing at":    {[]documents.Step{having(2, remove("c"))}, "NOT_FOUND 0:NOT_FOUND", "a@2=2 b@1=1", ""},
		"delete expired":       {[]documents.Step{remove("old")}, "0", "a@2=2 b@1=1", "expire old 1"},
		"delete expired at":    {[]documents.Step{having(1, remove("old"))}, "NOT_FOUND 0:NOT_FOUND", "a@2=2 b@1=1", ""},
		"delete where none":    {[]documents.Step{having(0, remove("c"))}, "0", "a@2=2 b@1=1", ""},
		"delete but must none": {[]documents.Step{having(0, remove("a"))}, "REVISION_MISMATCH 0:REVISION_MISMATCH", "a@2=2 b@1=1", ""},

		"bulk": {[]documents.Step{put("c", "3"), put("a", "4")}, "1 3", "a@3=4 b@1=1 c@1=3", "put c 1, put a 3"},
		"bulk, two fail": {
			[]documents.Step{put("c", "3"), having(1, put("a", "4")), having(7, put("b", "4"))},
			"REVISION_MISMATCH 1:REVISION_MISMATCH 2:REVISION_MISMATCH", "a@2=2 b@1=1", "",
		},
		"a key twice": {[]documents.Step{put("c", "3"), put("d", "3"), put("c", "4")}, "VALIDATION_FAILED 2:VALIDATION_FAILED", "a@2=2 b@1=1", ""},
		"transaction": {
			[]documents.Step{having(2, check("a")), having(0, check("z")), having(1, remove("b")), put("c", "3")},
			"2 0 0 1", "a@2=2 c@1=3", "delete b 1, put c 1",
		},
		"transaction, check fails": {[]documents.Step{having(1, check("a")), remove("b")}, "REVISION_MISMATCH 0:REVISION_MISMATCH", "a@2=2 b@1=1", ""},
		"transaction, none there":  {[]documents.Step{having(0, check("old")), put("c", "3")}, "0 1", "a@2=2 b@1=1 c@1=3", "put c 1"},
		"nothing":                  {nil, "", "a@2=2 b@1=1", ""},
	}
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		for name, tt := range tests {
			d := newHarness(t, s)
			d.mustWrite(put("a", "1"), put("b", "1"), until(d.now+1, put("old", "1")))
			d.now++
			d.mustWrite(put("a", "2"))
			if got := wrote(d.write(tt.steps...)); got != tt.answer {
				t.Errorf("%s: got answer %q, want %q", name, got, tt.answer)
			}
			items, next, err := d.Page(t.Context(), d.path, documents.Query{Values: true}, d.now)
			var left []string
			for _, item := range items {
				left = append(left, fmt.Sprintf("%s@%d=%s", item.Key, item.Revision, item.Value))
			}
			d.audit("after " + name)
			feed, err2 := d.Changes(t.Context(), d.path, 4, 10)
			var changed []string
			for _, c := range feed.Changes {
				changed = append(changed, fmt.Sprintf("%s %s %d", c.Op, c.Key, c.Revision))
			}
			if got := strings.Join(changed, ", "); err2 != nil || feed.Lost || got != tt.feed {
				t.Errorf("%s: got feed %q %+v and error %v, want %q", name, got, feed, err2, tt.feed)
			}
			if got := strings.Join(left, " "); err != nil || next != "" || got != tt.left {
				t.Errorf("%s: got documents %q, cursor %q and error %v, want %q", name, got, next, err, tt.left)
			}
		}
	})
}

// TestAnExpiredDocumentIsGone: for every reader at once, and with it what it took of the
// quota.
func TestAnExpiredDocumentIsGone(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		d.mustWrite(put("stays", "1"), until(d.now+60_000, put("goes", "22")))
		d.now += 59_999
		got, err := d.Get(t.Context(), d.path, "goes", d.now)
		want := &documents.Record{
			Key: "goes", Revision: 1, CreatedAtMS: 1_000_000, ExpiresAtMS: 1_060_000, UpdatedAtMS: 1_000_000,
			Bytes: int64(len("goes{}22")), Metadata: json.RawMessage(`{}`), Value: json.RawMessage(`22`),
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("got error %v, difference (-want +got):\n%s", err, diff)
		}
		d.now++
		if keys, next := d.page(documents.Query{}); !slices.Equal(keys, []string{"stays"}) || next != "" {
			t.Errorf("Page: got keys %v and next %q, want only %q", keys, next, "stays")
		}
		if _, err := d.Get(t.Context(), d.path, "goes", d.now); api.ErrorCode(err) != api.CodeDocumentNotFound {
			t.Errorf("Get: got %v; want CodeDocumentNotFound", err)
		}
		use, all, err := d.Use(t.Context(), d.path)
		if want := (documents.Count{Records: 1, Bytes: 8}); err != nil || use != want || all != want {
			t.Errorf("counts after reads of expired documents: got %+v of the namespace, %+v of the tenant and error %v, want %+v", use, all, err, want)
		}
	})
}

// TestPagesOfDocuments: keys in the order of their bytes, by prefix, filtered, and with a
// cursor only where more may follow.
func TestPagesOfDocuments(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		all := []string{"!", "B", "a", "a b", "ab", "b", "b:1", "b:2", "c{d}", "z", "é", "ü", "中文", "日本", "😀"}
		for i, key := range slices.Backward(all) {
			step := put(key, fmt.Sprint(i))
			step.Metadata = json.RawMessage(fmt.Sprintf(`{"even":%t,"text":"{\"value\":1}"}`, i%2 == 0))
			d.mustWrite(step)
		}
		even := func(d *documents.Record) bool { return strings.Contains(string(d.Metadata), `"even":true`) }
		tests := map[string]struct {
			q    documents.Query
			want []string
			next string
		}{
			"all":                {documents.Query{}, all, ""},
			"as many as wanted":  {documents.Query{Limit: 15}, all, ""},
			"a page":             {documents.Query{Limit: 14}, all[:14], "日本"},
			"its next":           {documents.Query{Limit: 14, After: "日本"}, all[14:], ""},
			"prefix":             {documents.Query{Prefix: "a"}, []string{"a", "a b", "ab"}, ""},
			"prefix, a page":     {documents.Query{Prefix: "a", Limit: 2}, []string{"a", "a b"}, "a b"},
			"prefix, its next":   {documents.Query{Prefix: "a", Limit: 2, After: "a b"}, []string{"ab"}, ""},
			"prefix with colon":  {documents.Query{Prefix: "b:"}, []string{"b:1", "b:2"}, ""},
			"prefix of a rune":   {documents.Query{Prefix: "日"}, []string{"日本"}, ""},
			"prefix of nothing":  {documents.Query{Prefix: "q"}, nil, ""},
			"after all":          {documents.Query{After: "😀"}, nil, ""},
			"matching":           {documents.Query{Match: even}, []string{"!", "a", "ab", "b:1", "c{d}", "é", "中文", "😀"}, ""},
			"matching, a page":   {documents.Query{Match: even, Limit: 3}, []string{"!", "a", "ab"}, "ab"},
			"matching in prefix": {documents.Query{Match: even, Prefix: "b"}, []string{"b:1"}, ""},
		}
		for name, tt := range tests {
			for _, values := range []bool{false, true} {
				tt.q.Values = values
				if keys, next := d.page(tt.q); !slices.Equal(keys, tt.want) || next != tt.next {
					t.Errorf("%s: got %q and cursor %q, want %q and %q", name, keys, next, tt.want, tt.next)
				}
			}
		}
		items, _, err := d.Page(t.Context(), d.path, documents.Query{Limit: 1}, d.now)
		if err != nil || items[0].Value != nil || string(items[0].Metadata) != `{"even":true,"text":"{\"value\":1}"}` {
			t.Errorf("Page without values: got %+v and error %v, want the metadata as it was put and no values", items, err)
		}
	})
}

// TestPagesAreBoundedInBytes: a command stops at a record when it has read enough bytes, and a page that
// finds no match ends; the next one continues behind it.
func TestPagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		const n = 200
		value := `"` + strings.Repeat("x", 60_000) + `"`
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%03d", i))
			d.mustWrite(put(all[i], value))
		}
		none := func(*documents.Record) bool { return false }
		last := func(d *documents.Record) bool { return d.Key == "199" }
		for name, tt := range map[string]struct {
			q     documents.Query
			want  []string
			pages int
		}{
			"values":      {documents.Query{Values: true, Limit: 100}, all, 2},
			"no values":   {documents.Query{Limit: 100}, all, 2},
			"no match":    {documents.Query{Values: true, Match: none}, nil, 2},
			"a far match": {documents.Query{Match: last}, all[199:], 2},
		} {
			var keys []string
			pages := 0
			for {
				page, next := d.page(tt.q)
				keys = append(keys, page...)
				pages++
				if next == "" {
					break
				}
				tt.q.After = next
			}
			if !slices.Equal(keys, tt.want) || pages != tt.pages {
				t.Errorf("%s: got %d keys on %d pages, want %d on %d", name, len(keys), pages, len(tt.want), tt.pages)
			}
		}
	})
}

// TestOnlyWhatHasExpiredExpires: an entry that a cut write has left too early takes nothing,
// and is put right.
func TestOnlyWhatHasExpiredExpires(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		d.mustWrite(put("stays", "1"), until(d.now+500, put("later", "1")), until(d.now+100, put("goes", "1")))
		expiry := d.key(d.path.Install, d.path.Namespace, "expiry")
		d.mustWrite(until(d.now+100, put("kept", "1")))
		d.mustWrite(put("kept", "1"))
		if err := s.Client().ZScore(t.Context(), expiry, "kept").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("ZSCORE of a document that no longer expires: got error %v, want %v", err, redis.Nil)
		}
		for _, key := range []string{"stays", "later", "nothing"} {
			if err := s.Client().ZAdd(t.Context(), expiry, redis.Z{Score: float64(d.now + 1), Member: key}).Err(); err != nil {
				t.Fatalf("ZAdd: %v", err)
			}
		}
		d.now += 100
		if n, more, err := d.ExpireDue(t.Context(), d.path.Tenant, d.now, 10); n != 4 || more || err != nil {
			t.Errorf("ExpireDue: got %d due, more %v and error %v, want 4 and no more", n, more, err)
		}
		if keys, _ := d.page(documents.Query{}); !slices.Equal(keys, []string{"kept", "later", "stays"}) {
			t.Errorf("Page after the expiry: got keys %v, want %v", keys, []string{"kept", "later", "stays"})
		}
		want := []redis.Z{{Score: float64(d.now + 400), Member: "later"}}
		left, err := s.Client().ZRangeWithScores(t.Context(), expiry, 0, -1).Result()
		if diff := cmp.Diff(want, left); err != nil || diff != "" {
			t.Errorf("got error %v, difference (-want +left):\n%s", err, diff)
		}
		due, err := s.Client().ZScore(t.Context(), d.key("expiring"), d.path.Install+"/"+d.path.Namespace).Result()
		if err != nil || int64(due) != d.now+400 {
			t.Errorf("ZSCORE of the namespace: got %v and error %v, want %d", due, err, d.now+400)
		}
		d.audit("after all")
	})
}
