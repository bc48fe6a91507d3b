package child

import (
	"fmt"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestAbandonedFetch: the host is told that a fetch was aborted, and a response that it has
// sent meanwhile is closed.
func TestAbandonedFetch(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]wire.HostReply{
		"a response with a body to come": {OK: true, Head: []byte(`{"body":7,"status":200,"status_text":"","url":"","redirected":false,"headers":[]}`)},
		"a whole response":               {OK: true, Head: []byte(`{"status":200,"status_text":"","url":"","redirected":false,"headers":[]}`)},
		"a failure":                      {Head: []byte(`{"code":"CS_X","message":"late"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source(`export default async () => {
				const stop = new AbortController(), waits = fetch("https://a.example/", { signal: stop.signal });
				stop.abort("gone");
				const reason = await waits.catch((e) => e);
				await cs.kv.get("after the late reply");
				await cs.kv.get("after what follows it");
				return reason;
			}`)
			var fetched uint32
			var calls []string
			p.host = func(c wire.HostCall) *wire.HostReply {
				switch c.Name {
				case "http.fetch":
					fetched = c.ID
					return nil
				case "http.cancel":
					calls = append(calls, c.Name+string(c.Head))
					return &wire.HostReply{Head: []byte(`{"code":"CS_X","message":"a refusal that concerns no script"}`)}
				}
				return &wire.HostReply{OK: true, Head: []byte(`{"found":false}`)}
			}
			p.abandoned = func(id uint32) {
				calls = append(calls, fmt.Sprint("abandon ", id == fetched))
				late.ID = id
				p.write(wire.AppendHostReply(nil, late))
			}
			if got := p.value("null"); got != `"gone"` {
				t.Errorf("got %s, want the reason of the abort", got)
			}
			want := "[abandon true]"
			if name == "a response with a body to come" {
				want = `[abandon true http.cancel{"id":7}]`
			}
			if got := fmt.Sprint(calls); got != want {
				t.Errorf("got the calls %s, want %s", got, want)
			}
		})
	}
}
