package jsonsize_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/codesous/sous/api/jsonsize"
)

type step struct {
	Name string   `json:"name"`
	Tags []string `json:"tags"`
	_    [48]byte
}

type options struct {
	Steps []step `json:"steps"`
}

type body struct {
	options

	Jobs    []step            `json:"jobs"`
	Files   map[string]string `json:"files"`
	Payload json.RawMessage   `json:"payload"`
	More    *body             `json:"more"`
	Any     any               `json:"any"`
}

// list returns a JSON array of n elements.
func list(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

func TestFits(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	many := list(20_000, "{}")
	size := int(reflect.TypeFor[step]().Size())
	for name, tt := range map[string]struct {
		text string
		want bool
	}{
		"as many as fit":          {`{"jobs":` + list(limit/size, "{}") + `}`, true},
		"one more":                {`{"jobs":` + list(limit/size+1, "{}") + `}`, false},
		"numbers in their place":  {`{"jobs":` + list(limit, "1") + `}`, false},
		"an embedded struct":      {`{"steps":` + many + `}`, false},
		"a pointer":               {`{"more":{"more":{"jobs":` + many + `}}}`, false},
		"another case":            {`{"JOBS":` + many + `}`, false},
		"a folded letter":         {`{"job` + "\u017f" + `":` + many + `}`, false},
		"an escaped name":         {`{"\u006aobs":` + many + `}`, false},
		"a name twice":            {`{"jobs":[],"jobs":` + many + `}`, false},
		"white space":             {" {\n\"jobs\" :\t" + strings.ReplaceAll(many, ",", " , ") + ` }`, false},
		"a slice in a slice":      {`{"jobs":[{"tags":` + list(100_000, `""`) + `}]}`, false},
		"a map":                   {`{"files":{` + strings.TrimSuffix(strings.Repeat(`"a":"",`, 20_000), ",") + `}}`, false},
		"a value of any type":     {`{"any":` + list(40_000, "[]") + `}`, false},
		"a text that is raw":      {`{"payload":` + list(400_000, "[]") + `}`, true},
		"an unknown member":       {`{"other":` + list(400_000, "[]") + `}`, true},
		"brackets within strings": {`{"jobs":[{"name":"` + strings.Repeat(`[{},{}]\"`, 100_000) + `"}]}`, true},
		"an escaped quote":        {`{"jobs":[{"name":"\\"},{"name":"\""}],"payload":` + many + `}`, true},
		"a large string":          {`{"payload":"` + strings.Repeat("x", 8<<20) + `"}`, true},
	} {
		if got := jsonsize.Fits([]byte(tt.text), reflect.TypeFor[body](), limit); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
		if !json.Valid([]byte(tt.text)) {
			t.Errorf("%s: got a text that is no JSON, want JSON", name)
		}
	}
}

// FuzzFits: any text is read to its end, and one that does not fit a hundred times its length has so
// many elements.
func FuzzFits(f *testing.F) {
	for _, seed := range []string{`{"jobs":[{},{}]}`, `{"files":{"a":"\""}}`, `[[`, `{"a"`, `{"a\`, `]}`, `{"jobs":[{"tags":[1,2 3]]}`, `{,}`, `[,,]`, `{1:2}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		padded := []byte(text + strings.Repeat(" ", 17<<10))
		if !jsonsize.Fits(padded, reflect.TypeFor[body](), int64(1000*len(padded))) {
			t.Errorf("Fits(%q): got false, want true for so few elements", text)
		}
	})
}
