package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
)

// TestBudgetBoundsARequest: a thousand schemas, or a thousand values, each of which is within
// its limits, end soon together. Cached schemas are free.
func TestBudgetBoundsARequest(t *testing.T) { // not parallel: it looks at the clock
	const most = slowdown * 3 * time.Second // of the processor; half a second by the estimate
	dense := func(i int) []byte {
		return []byte(`{"properties": {` + repeat(120, func(n int) string {
			return fmt.Sprintf(`"p%d_%d": {"type": "string", "pattern": "^[a-z]{1,8}$", "maxLength": %d}`, i, n, n)
		}) + `}}`)
	}
	cache, budget := NewCache(), NewBudget()
	begin, compiled := processorTime(t), 0
	var err error
	for ; compiled < 1000 && err == nil; compiled++ {
		_, err = cache.Get(fmt.Sprint(compiled), dense(compiled), budget)
	}
	if took := processorTime(t) - begin; api.ErrorCode(err) != api.CodeBodyLimit || took > most {
		t.Errorf("%d schemas of 8 KB: got error %v after %v, want code %s within %v", compiled, err, took, api.CodeBodyLimit, most)
	}
	if _, err := cache.Get("0", dense(0), budget); err != nil {
		t.Errorf("a cached schema: got error %v, want none", err)
	}

	slow, err := Compile([]byte(`{"items": {"allOf": [` + repeat(300, same(`{"type":"integer"}`)) + `]}}`))
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	value := json.RawMessage("[" + repeat(20, same("1")) + "]")
	if err := slow.Check(value); err != nil {
		t.Fatalf("Check of one value: got error %v, want none", err)
	}
	begin, budget = processorTime(t), NewBudget()
	checked := 0
	for err = nil; checked < 1000 && err == nil; checked++ {
		err = slow.CheckWithin(value, budget)
	}
	if took := processorTime(t) - begin; api.ErrorCode(err) != api.CodeBodyLimit || took > most {
		t.Errorf("%d values: got error %v after %v, want code %s within %v", checked, err, took, api.CodeBodyLimit, most)
	}
}

// TestOrdinaryRequestsAreWithinTheBudget: the largest calls of ordinary jobs.
func TestOrdinaryRequestsAreWithinTheBudget(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(`{"type": "object", "required": ["id", "rows"], "properties": {"id": {"type": "integer"}, "rows": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string", "pattern": "^[a-z]+$"}, "n": {"type": "integer", "minimum": 0}}}}}}`))
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	value := json.RawMessage(`{"id": 1, "rows": [` + repeat(20, same(`{"sku":"`+strings.Repeat("a", 12)+`","n":3}`)) + `]}`)
	budget := NewBudget()
	for i := range api.MaxSettleJobs {
		if err := s.CheckWithin(value, budget); err != nil {
			t.Fatalf("value %d of %d: got error %v, want none", i, api.MaxSettleJobs, err)
		}
	}
}
