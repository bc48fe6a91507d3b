package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/codesous/sous/api"
)

func TestSchemasSayWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	const invoice = `{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/invoice",
		"type": "object", "required": ["total"], "additionalProperties": false,
		"properties": {
			"total": {"type": "number", "minimum": 0},
			"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
			"state": {"enum": ["open", "paid"]},
			"note": {"$ref": "#note"},
			"tags": {"propertyNames": {"pattern": "^[a-z]+$"}},
			"size": {"const": {"w": 1}}
		},
		"$defs": {
			"line": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string", "minLength": 2}}},
			"text": {"$anchor": "note", "type": "string", "maxLength": 3}
		}
	}`
	s, err := Compile([]byte(invoice))
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	for _, tc := range []struct {
		value string
		want  []string // path: message
	}{
		{`{"total": 1, "lines": [{"sku": "ab"}], "state": "paid", "note": "abc", "tags": {"a": 1}, "size": {"w": 1.0}}`, nil},
		{`{}`, []string{"value.total: is required"}},
		{`{"total": -1}`, []string{"value.total: must be at least 0, got -1"}},
		{`{"total": 1, "lines": [{"sku": "ab"}, {"sku": "a"}, {}]}`, []string{"value.lines[1].sku: must have at least 2 characters, got 1", "value.lines[2].sku: is required"}},
		{`{"total": 1, "state": "late"}`, []string{"value.state: is not an allowed value"}},
		{`{"total": 1, "size": 3}`, []string{"value.size: is not an allowed value"}},
		{`{"total": 1, "note": "long"}`, []string{"value.note: must have at most 3 characters, got 4"}},
		{`{"total": 1, "tags": {"A": 1}}`, []string{"value.tags.A: is not an allowed name"}},
		{`{"total": 1, "more": 1}`, []string{"value.more: is not a known field"}},
		{`[]`, []string{"value: got array, want object"}},
	} {
		err := s.Check(json.RawMessage(tc.value))
		var got []string
		for _, f := range fields(t, err) {
			got = append(got, f.Path+": "+f.Message)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("Check(%s): offences differ (-want +got):\n%s", tc.value, diff)
		}
	}
}

// fields is where a refusal says that something is wrong.
func fields(t *testing.T, err error) []api.FieldError {
	t.Helper()
	if err == nil {
		return nil
	}
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Code != api.CodeDocumentInvalid {
		t.Errorf("got error %v, want code %s", err, api.CodeDocumentInvalid)
		return nil
	}
	return refused.Fields
}

func TestSchemasThatAreNone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schema, path string }{
		"not JSON":              {`{`, "schema"},
		"a text":                {`"x"`, "schema"},
		"a list":                {`[]`, "schema"},
		"unknown type":          {`{"type": "thing"}`, "schema.type"},
		"bound below 0":         {`{"properties": {"a": {"minLength": -1}}}`, "schema.properties.a.minLength"},
		"older draft":           {`{"$schema": "http://json-schema.org/draft-07/schema#"}`, "schema.$schema"},
		"draft of a subschema":  {`{"not": {"$schema": "http://json-schema.org/draft-07/schema#"}}`, "schema.not"},
		"dialect of their own":  {`{"$schema": "https://example.com/meta"}`, "schema.$schema"},
		"vocabulary":            {`{"$vocabulary": {}}`, "schema"},
		"name in it":            {`{"$defs": {"a": {"$id": "https://example.com/x"}}}`, "schema.$defs.a"},
		"reference to the web":  {`{"$ref": "https://example.com/x"}`, "schema.$ref"},
		"reference to a file":   {`{"$ref": "file:///etc/passwd"}`, "schema.$ref"},
		"reference to a path":   {`{"$ref": "/etc/passwd"}`, "schema.$ref"},
		"reference to itself":   {`{"$ref": "sous:schema#"}`, "schema.$ref"},
		"reference to nothing":  {`{"$ref": "#/$defs/none"}`, "schema.$ref"},
		"reference to no place": {`{"$ref": "#/enum/0", "enum": [{}]}`, "schema.$ref"},
		"unknown anchor":        {`{"$ref": "#none"}`, "schema.$ref"},
		"dynamic reference":     {`{"$dynamicRef": "#a", "$dynamicAnchor": "a"}`, "schema"},
		"recursive reference":   {`{"$recursiveRef": "#"}`, "schema"},
		"circle":                {`{"$ref": "#"}`, "schema"},
		"circle of two":         {`{"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}}`, "schema"},
		"circle below":          {`{"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}]}}}`, "schema"},
		"pattern":               {`{"properties": {"a": {"pattern": "("}}}`, "schema.properties.a.pattern"},
		"pattern of a name":     {`{"patternProperties": {"(": {}}}`, "schema.patternProperties.("},
		"list of items":         {`{"items": [{}]}`, "schema.items"},
		"dependencies":          {`{"dependencies": {}}`, "schema"},
		"names that are none":   {`{"required": [[]]}`, "schema.required"},
		"dependents":            {`{"dependentRequired": {"a": [{}]}}`, "schema.dependentRequired"},
	} {
		_, err := Compile([]byte(tc.schema))
		if got := fields(t, err); len(got) == 0 || got[0].Path != tc.path {
			t.Errorf("%s: at %+v, want %q: %v", name, got, tc.path, err)
		}
	}
}

// repeat joins the results of f for 0 to n-1 with commas.
func repeat(n int, f func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

func same(s string) func(int) string { return func(int) string { return s } }

// doubling returns a schema of n definitions. Each is wrap with its NEXT replaced by a
// reference to the following definition.
func doubling(n int, wrap string) string {
	return `{"$ref": "#/$defs/d0", "$defs": {` + repeat(n, func(i int) string {
		return fmt.Sprintf(`"d%d": `, i) + strings.ReplaceAll(wrap, "NEXT", fmt.Sprintf(`{"$ref": "#/$defs/d%d"}`, i+1))
	}) + fmt.Sprintf(`, "d%d": {"type": "string"}}}`, n)
}

// nested is n levels of a list, or of an object's member a, around inner.
func nested(n int, open, inner, end string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

// collisions is a list of n trees of lists that the validator's hash cannot tell apart:
// it writes a byte for each list and none at its end.
func collisions(n int) string {
	trees := map[int][]string{1: {"[]"}}
	var forest func(size, most int) []string
	forest = func(size, most int) []string { // lists of trees with size lists in all
		if size == 0 {
			return []string{""}
		}
		var out []string
		for first := 1; first <= size && len(out) < most; first++ {
			for _, head := range treesOf(trees, first, forest, most) {
				for _, tail := range forest(size-first, most) {
					if tail != "" {
						tail = "," + tail
					}
					out = append(out, head+tail)
					if len(out) >= most {
						return out
					}
				}
			}
		}
		return out
	}
	all := treesOf(trees, 14, forest, n)
	return "[" + strings.Join(all, ",") + "]"
}

func treesOf(known map[int][]string, size int, forest func(size, most int) []string, most int) []string {
	if _, ok := known[size]; !ok {
		for _, inner := range forest(size-1, most) {
			known[size] = append(known[size], "["+inner+"]")
		}
	}
	return known[size]
}

// processorTime is what this process has used of the processors.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatalf("Getrusage: %v", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestHostileSchemasEndSoon holds what tenants can send, as schemas and as values, to a
// time and to memory.
func TestHostileSchemasEndSoon(t *testing.T) { // not parallel: it looks at the clock and at all memory
	const most = slowdown * 100 * time.Millisecond
	const mostBytes = 64 << 20
	long := strings.Repeat("a", 60_000)
	for name, tc := range map[string]struct{ schema, value string }{
		"twofold allOf":             {doubling(60, `{"allOf": [NEXT, NEXT]}`), `1`},
		"twofold anyOf":             {doubling(60, `{"anyOf": [NEXT, NEXT]}`), `1`},
		"twofold oneOf":             {doubling(60, `{"oneOf": [NEXT, NEXT]}`), `"x"`},
		"twofold not":               {doubling(60, `{"not": {"anyOf": [NEXT, NEXT]}}`), `1`},
		"twofold if":                {doubling(60, `{"if": NEXT, "then": NEXT, "else": NEXT}`), `1`},
		"twofold dependents":        {doubling(60, `{"dependentSchemas": {"a": NEXT, "b": NEXT}}`), `{"a": 1, "b": 1}`},
		"twofold through members":   {doubling(60, `{"properties": {"a": NEXT}, "patternProperties": {"a": NEXT}}`), nested(60, `{"a":`, "1", "}")},
		"twofold through items":     {doubling(60, `{"items": NEXT, "contains": NEXT}`), nested(60, "[", "1", "]")},
		"twofold through a circle":  {`{"items": {"$ref": "#"}, "contains": {"$ref": "#"}, "unevaluatedItems": {"$ref": "#"}}`, nested(60, "[", "1", "]")},
		"twofold names":             {doubling(60, `{"propertyNames": NEXT, "additionalProperties": NEXT, "unevaluatedProperties": NEXT}`), nested(60, `{"a":`, "1", "}")},
		"deep reference chain":      {`{"$ref": "#/$defs/d0", "$defs": {` + repeat(900, func(i int) string { return fmt.Sprintf(`"d%d": {"$ref": "#/$defs/d%d"}`, i, i+1) }) + `, "d900": {}}}`, `1`},
		"deep schema":               {nested(5000, `{"not":`, "{}", "}"), `1`},
		"deep value":                {`{"items": {"$ref": "#"}, "minItems": 2}`, nested(30_000, "[", "", "]")},
		"deep value within":         {`{"items": {"$ref": "#"}, "minItems": 2}`, nested(64, "[", "", "]")},
		"many subschemas":           {`{"allOf": [` + repeat(20_000, same("{}")) + `]}`, `1`},
		"as many as can be":         {`{"allOf": [` + repeat(990, same(`{"type":"string"}`)) + `]}`, `1`},
		"as many for each":          {`{"items": {"allOf": [` + repeat(990, same(`{"type":"string"}`)) + `]}}`, "[" + repeat(30_000, same("1")) + "]"},
		"long names":                {`{"$defs": {"` + long[:20_000] + `": {"allOf": [` + repeat(900, same(`{"minLength":1}`)) + `]}}}`, `1`},
		"many references":           {`{"x": {"x": {}}, "allOf": [` + repeat(900, same(`{"$ref": "#/x/x"}`)) + `]}`, `1`},
		"many names in it":          {`{"items": [` + repeat(4000, func(i int) string { return fmt.Sprintf(`{"$id":"%d"}`, i) }) + `]}`, `1`},
		"lists that look the same":  {`{"uniqueItems": true}`, collisions(1400)},
		"few long lists":            {`{"uniqueItems": true}`, "[" + repeat(20, func(i int) string { return "[" + repeat(1500, same("1")) + fmt.Sprintf(",%d]", i) }) + "]"},
		"required lists":            {`{"required": ` + collisions(1400) + `}`, `{}`},
		"types that look the same":  {`{"type": ` + collisions(1400) + `}`, `{}`},
		"many allowed numbers":      {`{"items": {"enum": [` + repeat(10_000, func(i int) string { return fmt.Sprint(i) }) + `]}}`, "[" + repeat(15_000, same("0.5")) + "]"},
		"large allowed values":      {`{"items": {"enum": [` + repeat(30, func(i int) string { return "[" + repeat(900, same("1")) + fmt.Sprintf(",%d]", i) }) + `]}}`, "[" + repeat(30, func(int) string { return "[" + repeat(900, same("1")) + ",99]" }) + "]"},
		"numbers of a million":      {`{"type": "integer"}`, `1e1000000`},
		"many of them":              {`{"items": {"type": "integer"}}`, "[" + repeat(7000, same("1e999999")) + "]"},
		"bound of a million":        {`{"minimum": 1e999999, "multipleOf": 1e-999999}`, `1`},
		"number without a fraction": {`{"maximum": 1e99999999999}`, `1`},
		"allowed numbers of it":     {`{"enum": [` + repeat(7000, same("1e999999")) + `]}`, `1`},
		"many digits":               {`{"multipleOf": 0.` + strings.Repeat("3", 60_000) + `}`, `1`},
		"large pattern":             {`{"pattern": "((a{30}){30}){30}b"}`, `"` + long + `"`},
		"many large patterns":       {`{"patternProperties": {` + repeat(900, func(i int) string { return fmt.Sprintf(`"%d(a{100}){9}": {}`, i) }) + `}}`, `{"a": 1}`},
		"classes of letters":        {`{"pattern": "` + strings.Repeat(`\\pL`, 300) + `"}`, `"a"`},
		"many classes of letters":   {`{"patternProperties": {` + repeat(90, func(i int) string { return fmt.Sprintf(`"%d%s": {}`, i, strings.Repeat(`\\pL`, 100)) }) + `}}`, `{"a": 1}`},
		"slow pattern":              {`{"pattern": "(x?){1000}y"}`, `"` + strings.Repeat("x", 60_000) + `"`},
		"slow patterns of names":    {`{"patternProperties": {` + repeat(15, func(i int) string { return fmt.Sprintf(`"%d(x?){900}y": {}`, i) }) + `}}`, `{"` + strings.Repeat("x", 60_000) + `": 1}`},
		"many required":             {`{"items": {"required": [` + repeat(8000, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}}`, "[" + repeat(20_000, same("{}")) + "]"},
		"everything fails":          {`{"items": {"type": "string"}}`, "[" + repeat(30_000, same("1")) + "]"},
		"a list in each branch":     {`{"items": {"anyOf": [` + repeat(300, func(i int) string { return fmt.Sprintf(`{"const": %d}`, i) }) + `]}}`, "[" + repeat(15_000, same(`"x"`)) + "]"},
		"unevaluated by many":       {`{"allOf": [` + repeat(900, same(`{"properties": {"a": true}}`)) + `], "unevaluatedProperties": false}`, "{" + repeat(5000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }) + "}"},
		"large list of the allowed": {`{"enum": ["` + long + `"]}`, `1`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile([]byte(`{"type":"object"}`)); err != nil { // warms the metaschema up
				t.Fatalf("Compile: %v", err)
			}
			if len(tc.schema) > 1<<17 || len(tc.value) > api.MaxDocumentValueBytes+1024 {
				t.Fatalf("case: got %d bytes of schema and %d of value, want at most %d and %d, which clients can send", len(tc.schema), len(tc.value), 1<<17, api.MaxDocumentValueBytes+1024)
			}
			// The best of a few, of the processor's time: others have the machine, too.
			took, allocated := time.Hour, uint64(1<<40)
			var err error
			for range 5 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				begin := processorTime(t)
				var s *Schema
				s, err = Compile([]byte(tc.schema))
				if err == nil {
					err = s.Check(json.RawMessage(tc.value))
				}
				took = min(took, processorTime(t)-begin)
				runtime.ReadMemStats(&after)
				allocated = min(allocated, after.TotalAlloc-before.TotalAlloc)
				if took <= most && allocated <= mostBytes*slowdown {
					break
				}
			}
			if api.ErrorCode(err) != api.CodeDocumentInvalid {
				t.Fatalf("got error %v, want code %s", err, api.CodeDocumentInvalid)
			}
			if len(err.Error()) > 2000 {
				t.Errorf("got an error of %d bytes, want at most 2000", len(err.Error()))
			}
			if took > most || allocated > mostBytes*slowdown {
				t.Errorf("got %v and %d KiB for error %v, want at most %v and %d KiB", took, allocated>>10, err, most, mostBytes*slowdown>>10)
			}
		})
	}
}

// TestOrdinaryValuesAreNotTooCostly holds the bounds to what people do.
func TestOrdinaryValuesAreNotTooCostly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schema, value string }{
		"ten thousand numbers": {`{"type": "array", "items": {"type": "integer", "minimum": 0}}`, "[" + repeat(10_000, same("1")) + "]"},
		"a thousand records": {`{"type": "array", "items": {"type": "object", "required": ["id", "name"], "properties": {"id": {"type": "integer"}, "name": {"type": "string", "maxLength": 80, "pattern": "^[a-z ]+$"}}}}`,
			"[" + repeat(1000, func(i int) string { return fmt.Sprintf(`{"id":%d,"name":"some name or other"}`, i) }) + "]"},
		"two thousand names that differ": {`{"items": {"type": "string"}, "uniqueItems": true}`, "[" + repeat(2000, func(i int) string { return fmt.Sprintf(`"name %d"`, i) }) + "]"},
		"records that differ":            {`{"uniqueItems": true}`, "[" + repeat(200, func(i int) string { return fmt.Sprintf(`{"id":"%d","name":"x"}`, i) }) + "]"},
		"a choice of twenty":             {`{"items": {"oneOf": [` + repeat(20, func(i int) string { return fmt.Sprintf(`{"properties": {"kind": {"const": "k%d"}}}`, i) }) + `]}}`, "[" + repeat(200, func(i int) string { return fmt.Sprintf(`{"kind":"k%d"}`, i%20) }) + "]"},
		"a text of 60 KB":                {`{"type": "string", "pattern": "^a+$"}`, `"` + strings.Repeat("a", 60_000) + `"`},
		"a tree":                         {`{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}}`, nested(20, `{"children":[{},{},`, "{}", "]}")},
		"everything":                     {`true`, `{"a": 1}`},
	} {
		s, err := Compile([]byte(tc.schema))
		if err != nil {
			t.Errorf("Compile of %s: got error %v, want none", name, err)
			continue
		}
		if err := s.Check(json.RawMessage(tc.value)); err != nil {
			t.Errorf("Check of %s: got error %v, want none", name, err)
		}
	}
}
