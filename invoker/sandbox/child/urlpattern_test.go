package child

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// publicPatterns runs the cases of the event, which are those of urlpatterntestdata.json, as
// the script of web-platform-tests does, and returns the differences.
const publicPatterns = `
const parts = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
const earlier = { protocol: [], username: [], password: [], hostname: ["protocol"], port: ["protocol", "hostname"] };
earlier.pathname = [...earlier.port, "port"];
earlier.search = [...earlier.pathname, "pathname"];
earlier.hash = [...earlier.search, "search"];
const show = (v) => JSON.stringify(v, (_, x) => x === undefined ? "undefined" : x);

// wanted returns the pattern string of a component that a case does not spell out.
function wanted({ pattern, exactly_empty_components: empty = [] }, part) {
  const init = typeof pattern[0] === "object" ? pattern[0] : null;
  const text = init ? init.baseURL : typeof pattern[1] === "string" ? pattern[1] : undefined;
  if (empty.includes(part)) return "";
  if (init && init[part]) return init[part];
  if (init && earlier[part].some((c) => c in init)) return "*";
  if (text === undefined || part === "username" || part === "password") return "*";
  const value = new URL(text)[part];
  return part === "protocol" ? value.slice(0, -1) : part === "search" || part === "hash" ? value.slice(1) : value;
}

function run(entry) {
  let p;
  try {
    p = new URLPattern(...entry.pattern);
  } catch (e) {
    return entry.expected_obj === "error" && e instanceof TypeError ? [] : ["threw " + e];
  }
  if (entry.expected_obj === "error") return ["did not throw"];
  const wrong = [];
  const same = (what, got, want) => { if (show(got) !== show(want)) wrong.push(what + ": got " + show(got) + ", want " + show(want)); };
  for (const part of parts) same(part, p[part], entry.expected_obj?.[part] ?? wanted(entry, part));
  if (entry.expected_match === "error") {
    for (const f of ["test", "exec"]) try { p[f](...entry.inputs); wrong.push(f + " did not throw"); } catch (e) { same(f, e.name, "TypeError"); }
    return wrong;
  }
  if (entry.inputs === undefined) return wrong;
  same("test", p.test(...entry.inputs), !!entry.expected_match);
  const got = p.exec(...entry.inputs);
  if (!entry.expected_match || !got) return same("exec", got, entry.expected_match ?? null), wrong;
  const inputs = entry.expected_match.inputs ?? entry.inputs;
  const sorted = (v) => typeof v === "object" ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => a < b ? -1 : 1)) : v;
  same("inputs", got.inputs.map(sorted), inputs.map(sorted));
  for (const part of parts) {
    let want = entry.expected_match[part];
    if (!want) want = { input: "", groups: entry.exactly_empty_components?.includes(part) ? {} : { 0: "" } };
    same("input of " + part, got[part].input, want.input);
    const plain = (g) => sorted(Object.fromEntries(Object.entries(g).map(([k, v]) => [k, v ?? null])));
    same("groups of " + part, plain(got[part].groups), plain(want.groups));
  }
  return wrong;
}
export default (entries) => entries.flatMap((e) => { const w = run(e); return w.length ? [show(e.pattern) + " " + show(e.inputs) + ": " + w.join("; ")] : [] });
`

// TestURLPatternPublicData runs the cases of web-platform-tests, which are no part of this
// repository: URLPATTERN_DATA is the path of urlpattern/resources/urlpatterntestdata.json.
func TestURLPatternPublicData(t *testing.T) {
	t.Parallel()
	path := os.Getenv("URLPATTERN_DATA")
	if path == "" {
		t.Skip("URLPATTERN_DATA is not set; make urlpattern sets it")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil || len(all) == 0 {
		t.Fatalf("json.Unmarshal(%s): %d cases, %v, want some", path, len(all), err)
	}
	p := inProcess(t)
	p.source(publicPatterns)
	var entries []json.RawMessage
	for _, e := range all {
		if e[0] == '{' { // the others are comments
			entries = append(entries, e)
		}
	}
	event, err := json.Marshal(entries)
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	var failures []string
	if err := json.Unmarshal([]byte(p.value(string(event))), &failures); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	for _, f := range failures {
		t.Errorf("got difference in case %s, want none", f)
	}
	t.Logf("%d of %d cases pass", len(entries)-len(failures), len(entries))
}

// TestURLPatternIsInterrupted: the time limit ends a match that backtracks without end, also
// that of a protocol, which the constructor makes.
func TestURLPatternIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"exec":        `new URLPattern({ pathname: "/((?:a|a)*b)" }).exec("https://a/" + "a".repeat(200))`,
		"test":        `new URLPattern({ search: "((?:a|a)*b)" }).test({ search: "a".repeat(200) })`,
		"constructor": `new URLPattern({ protocol: "((?:(?:" + "(?:|)".repeat(200) + "h)x|ftp)?nothing)" })`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t)
			p.source(`export default () => { try { return ` + source + `; } catch (e) { return "caught " + e } }`)
			p.begin("null", 100*time.Millisecond)
			if o := p.finish(); o.Outcome != wire.OutcomeTimeout {
				t.Errorf("outcome %d (%s), want a timeout", o.Outcome, o.Body)
			}
		})
	}
}
