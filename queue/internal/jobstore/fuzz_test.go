package jobstore

import "testing"

// FuzzStored reads what stands in a store that another release, or another program, has
// written: the state of a job, its spec, the name of a queue, and the position of a page. What
// is accepted is written back as it was read.
func FuzzStored(f *testing.F) {
	for _, seed := range []string{
		"", "0", "pending", "active|1|2|3", "1 2 3 4 5 6", "t_abc123/default/mails", "a/b", "////",
		`{"namespace":"default","queue":"q","payload":1}`, `{"target":{"function":"f"},"activation":{"hops":3}}`, `[]`, "\x00\xff",
		"5.1700000000000", "-1.9223372036854775808",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if run, err := ParseRun(text); err == nil {
			again, err := ParseRun(run.String())
			if err != nil || again != run {
				t.Errorf("ParseRun(%q) = %+v, written as %q and read as %+v, error %v, want the same run", text, run, run.String(), again, err)
			}
		}
		if q, ok := ParseQueue(text); ok && q.Tenant+"/"+q.Namespace+"/"+q.Name != text {
			t.Errorf("ParseQueue(%q) = %+v, want a queue of that name", text, q)
		}
		_, _ = ParsePosition(text) // must not panic
		_, _ = DecodeSpec(text)
	})
}
