package child

import (
	"strings"
	"testing"
)

// TestFieldsNamedLikeMethods: goja takes fields named get, set or async for methods. They
// are quoted, and the other fields stay fields: a lowered private one would be an entry of a
// WeakMap.
func TestFieldsNamedLikeMethods(t *testing.T) {
	t.Parallel()
	const source = `class C { get; set = (n) => n + this.#p; static async = 3; #p = 5; get got() { return this.set(1) } }
export default () => [new C().got, C.async, C.name, Object.keys(new C()), new C().set.name]`
	files := map[string][]byte{"function.js": []byte(source)}
	script, problems := compile(files, "", "", syntax{})
	if len(problems) > 0 {
		t.Fatalf("compile: got problems %+v, want none", problems)
	}
	if text := string(script); !strings.Contains(text, `"set" =`) || strings.Contains(text, "WeakMap") {
		t.Errorf("got the script %s, want a quoted set and no WeakMap", text)
	}
	p := inProcess(t)
	p.host = answer
	p.source(source)
	if got, want := p.value("null"), `[6,3,"C",["get","set"],"set"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
