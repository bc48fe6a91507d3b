package jobstore

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
)

// TestSpecsAreReadAsTheyWereWritten encodes and decodes specs with and without options, and
// compares the short encoding with the general one.
func TestSpecsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := &api.JobSpec{
			Namespace: rapid.String().Draw(t, "namespace"), Queue: rapid.String().Draw(t, "queue"),
			CreatedAtMS: rapid.Int64().Draw(t, "created"), Score: rapid.Int64().Draw(t, "score"),
			Payload: json.RawMessage(rapid.StringMatching(`"[a-z\n{}]*"`).Draw(t, "payload")),
		}
		if rapid.Bool().Draw(t, "options") {
			spec.UniqueKey = rapid.StringMatching(`[a-z",:]+`).Draw(t, "unique key")
			spec.MaxAttempts = rapid.IntRange(0, 9).Draw(t, "attempts")
		}
		text, err := EncodeSpec(spec)
		if err != nil {
			t.Fatalf("EncodeSpec: %v", err)
		}
		header, _, _ := strings.Cut(text, "\n")
		var long api.JobSpec
		if err := json.Unmarshal([]byte(header), &long); err != nil {
			t.Fatalf("decode header %s: %v", header, err)
		}
		long.Payload = spec.Payload
		got, err := DecodeSpec(text)
		if err != nil {
			t.Fatalf("DecodeSpec: %v", err)
		}
		if diff := cmp.Diff(&long, got); diff != "" {
			t.Errorf("DecodeSpec of header %s, -want +got:\n%s", header, diff)
		}
		without := *spec
		without.Payload = nil
		if raw, err := api.EncodeJSON(without); err != nil || string(raw) != header {
			t.Errorf("EncodeSpec header = %s, EncodeJSON = %s, %v; want them equal", header, raw, err)
		}
	})
}

// TestHeadersThatOnlyLookPlain checks that decodePlain leaves headers with options, escapes
// or errors to the general decoder.
func TestHeadersThatOnlyLookPlain(t *testing.T) {
	t.Parallel()
	for _, header := range []string{
		`{"namespace":"a","queue":"b","payload":null,"created_at_ms":1,"score":2,"hostname":"h"}`,
		`{"namespace":"a","queue":"b","priority":"high","payload":null,"created_at_ms":1,"score":2}`,
		`{"namespace":"a\"","queue":"b","payload":null,"created_at_ms":1,"score":2}`,
		`{"namespace":"a","queue":"b\u0041","payload":null,"created_at_ms":1,"score":2}`,
		`{"namespace":"a","queue":"b","payload":null,"created_at_ms":1,"score":2`,
		`{"namespace":"a","queue":"b","payload":null,"created_at_ms":1.5,"score":2}`,
		`{"namespace":"a","queue":"b","payload":null,"created_at_ms":1,"score":2}}`,
	} {
		if s, ok := decodePlain(header); ok {
			t.Errorf("decodePlain(%s) = %+v, true; want false", header, s)
		}
	}
}

// TestRunsAreReadAsTheyWereWritten parses and formats runs, and refuses malformed ones.
func TestRunsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"pending 0 0 1 - -", "active 1 2 3 1f w1 2", "active 1 2 3 1f w1@1700000000000 2", "dead 1 2 3 1f a@b@5", "active 1 2 3 - @7", "active 1 2 3 - w@07", "active 1 2 3 - w@", "active 1 2 3 - w@7/mail-1", "active 1 2 3 - w@7/", "active 1 2 3 - w@7/a/b 1"} {
		if r, err := ParseRun(text); err != nil || r.String() != text {
			t.Errorf("ParseRun(%q) = %q, %v; want the same text and no error", text, r, err)
		}
	}
	for _, text := range []string{"", "pending", "pending 0 0 1 -", "pending 0 0 1 - - 1 2", "pending x 0 1 - -", "pending 0 x 1 - -", "pending 0 0 x - -"} {
		if r, err := ParseRun(text); err == nil {
			t.Errorf("ParseRun(%q) = %+v, nil; want an error", text, r)
		}
	}
}

// TestRunsHaveTheirWorkersAndStarts: runs of older releases have no start, and ids may contain the
// separator.
func TestRunsHaveTheirWorkersAndStarts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Run{
		"-":                {Worker: none},
		"w1":               {Worker: "w1"},
		"w1@1700000000000": {Worker: "w1", Started: 1_700_000_000_000},
		"me@host@5":        {Worker: "me@host", Started: 5},
		"me@host":          {Worker: "me@host"},
		"me@0":             {Worker: "me@0"},
		"me@host@5/mail-1": {Worker: "me@host", Started: 5, Host: "mail-1"},
		"me@5/":            {Worker: "me@5/"},
		"me@5x/mail-1":     {Worker: "me@5x/mail-1"},
		"me/5":             {Worker: "me/5"},
	} {
		got, err := ParseRun("active 1 2 3 - " + text)
		if err != nil || got.Worker != want.Worker || got.Started != want.Started || got.Host != want.Host {
			t.Errorf("ParseRun of worker %q: got worker %q, start %d, host %q, error %v; want %q, %d, %q", text, got.Worker, got.Started, got.Host, err, want.Worker, want.Started, want.Host)
		}
	}
}

// A host in a run is bounded, and has no character that ends a word of the run or a part of it.
func TestHostOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "", "mail-1": "mail-1", "A.b_c:9": "A.b_c:9", "two words": "", "a@b": "", "a/b": "", "höst": "", "a\x00": "",
		strings.Repeat("x", 255): strings.Repeat("x", 64),
	} {
		if got := HostOf(name); got != want {
			t.Errorf("HostOf(%q): got %q, want %q", name, got, want)
		}
	}
}

// TestCallbacksOfOlderReleasesHaveTheirBatch: they were stored with the batch as their parent.
func TestCallbacksOfOlderReleasesHaveTheirBatch(t *testing.T) {
	t.Parallel()
	const tenant = "t_acme01"
	batch, job := api.NewJobID(), api.NewJobID()
	for name, c := range map[string]struct {
		id            string
		spec          api.JobSpec
		parent, batch string
	}{
		"a callback of an older release": {CallbackID(tenant, batch), api.JobSpec{ParentID: batch}, "", batch},
		"a callback":                     {CallbackID(tenant, batch), api.JobSpec{CallbackOf: batch}, "", batch},
		"a job of a chain":               {api.NewJobID(), api.JobSpec{ParentID: job}, job, ""},
		"any other job":                  {job, api.JobSpec{}, "", ""},
	} {
		if parent, of := Origin(tenant, c.id, &c.spec); parent != c.parent || of != c.batch {
			t.Errorf("Origin of %s: got parent %q, batch %q, want %q, %q", name, parent, of, c.parent, c.batch)
		}
	}
}
