package schema

import "github.com/codesous/sous/api"

// requestBudget is the cost of a Budget, roughly in nanoseconds: half a second. costByte is
// that of compiling a byte of a schema; dense ones of 7.5 KB take 10 ms.
const (
	requestBudget = 500_000_000
	costByte      = 1_500
)

// Budget bounds the cost of all compilations and checks that one request causes: a request may
// have a thousand schemas, or a thousand values, each of which is within its own limits. It is
// for one goroutine. A nil Budget bounds nothing.
type Budget struct{ left int64 }

// NewBudget returns a budget of about half a second of processor time.
func NewBudget() *Budget { return &Budget{requestBudget} }

// spend subtracts a cost. It returns CodeBodyLimit if the budget was used up before.
func (b *Budget) spend(cost int64) error {
	if b == nil {
		return nil
	}
	if b.left <= 0 {
		return api.Errorf(api.CodeBodyLimit, "the schemas of one request take too long together: send them in several requests")
	}
	b.left -= cost
	return nil
}
