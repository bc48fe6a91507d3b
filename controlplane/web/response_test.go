package web

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// listOf returns a JSON array of n times element.
func listOf(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// Headers and cookies of an answer are bounded in number and bytes, on the wire as in their JSON,
// and refused before they are decoded.
func TestHeadsOfAnswersAreBounded(t *testing.T) { // not parallel: it measures the allocations
	const most = 4 << 20 // bytes that an answer may take, besides the result
	names := func(n int, value string) string {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"x-%d":%s`, i, value))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	for name, tt := range map[string]struct {
		fields string
		ok     bool
	}{
		"256 cookies":                    {`"cookies":` + listOf(256, `"a=,\","`), true},
		"256 cookies and no header":      {`"headers":{},"cookies":` + listOf(256, `"a="`), true},
		"257 cookies":                    {`"cookies":` + listOf(257, `"a="`), false},
		"a million cookies":              {`"cookies":` + listOf(1_000_000, `"a="`), false},
		"256 headers":                    {`"headers":` + names(256, `"1"`), true},
		"257 headers":                    {`"headers":` + names(257, `"1"`), false},
		"257 headers of the connection":  {`"headers":{` + strings.Repeat(`"te":"1",`, 256) + `"te":"1"}`, false},
		"many headers without a value":   {`"headers":` + names(50_000, `[]`), false},
		"headers and cookies, 256":       {`"headers":{"a":` + listOf(128, `"1"`) + `},"cookies":` + listOf(128, `"a="`), true},
		"headers and cookies, 257":       {`"headers":{"a":` + listOf(129, `"1"`) + `},"cookies":` + listOf(128, `"a="`), false},
		"a value of 1 MiB":               {`"headers":{"a":"` + strings.Repeat("x", 1<<20) + `"}`, false},
		"a value of 900 KiB":             {`"headers":{"a":"` + strings.Repeat("x", 900<<10) + `"}`, true},
		"a cookie of 6 MiB":              {`"cookies":["` + strings.Repeat("x", 6<<20) + `"]`, false},
		"a long name with many values":   {`"headers":{"` + strings.Repeat("x", 100<<10) + `":` + listOf(200, `"1"`) + `}`, false},
		"lists in the list of cookies":   {`"cookies":` + listOf(300_000, `[]`), false},
		"a body as large as it may be":   {`"headers":{"a":"1"},"body":"` + strings.Repeat("x", 5<<20) + `"`, true},
		"commas and brackets in a value": {`"headers":{"a":"` + strings.Repeat(`,[{\",`, 1000) + `"}`, true},
	} {
		result := json.RawMessage(`{"statusCode":200,` + tt.fields + `}`)
		var answer response
		var err error
		took := allocated(func() { answer, err = mapResult(result) })
		if (err == nil) != tt.ok || err != nil && api.ErrorCode(err) != api.CodeRuntimeException {
			t.Errorf("%s: mapResult = %v, want an answer: %t, or else %s", name, err, tt.ok, api.CodeRuntimeException)
		}
		if took > most {
			t.Errorf("%s: mapResult allocated %d bytes, want at most %d", name, took, uint64(most))
		}
		if size := answer.size(); err == nil && size < len(answer.body)+2 {
			t.Errorf("%s: size = %d, want the %d bytes of the body and those of the headers", name, size, len(answer.body))
		}
	}
}

// What confinement adds to the cookies of an answer is bounded, and counted.
func TestSizeOfConfinedAnswers(t *testing.T) {
	t.Parallel()
	answer, err := mapResult(json.RawMessage(`{"statusCode":200,"cookies":` + listOf(256, `"a="`) + `}`))
	if err != nil {
		t.Fatalf("mapResult = %v, want an answer", err)
	}
	before := answer.size()
	own := &target{tenant: "t_acme01", namespace: strings.Repeat("n", 64), function: strings.Repeat("f", 64), shared: true}
	own.confine(answer.header)
	got, want := answer.size(), 0
	for name, values := range answer.header {
		for _, value := range values {
			want += len(name + ": " + value + "\r\n")
		}
	}
	if got != want || got <= before || got > before+256*300 {
		t.Errorf("size after confine = %d, want %d, which is more than %d and at most 300 bytes more for each cookie", got, want, before)
	}
}
