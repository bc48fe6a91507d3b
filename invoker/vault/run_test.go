package vault

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/secrets"
)

// A value that holds the one before it is found whole, and not only that part of it.
func TestRunFindsAValueThatHoldsTheOneBefore(t *testing.T) {
	t.Parallel()
	r := &Run{vault: &Vault{}}
	for _, value := range []string{"hunter2", "hunter2 and its new end"} {
		r.keep(&generation{redactor: newRedactor([]string{value}), holders: 1})
	}
	if got := string(r.Line([]byte("it is hunter2 and its new end, was hunter2"))); got != "it is ***, was ***" {
		t.Errorf(`string = %v, want "it is ***, was ***"`, got)
	}
}

// That nothing has changed makes no more to find, nor to hold.
func TestRunHoldsNoMoreWhereNothingChanges(t *testing.T) {
	t.Parallel()
	same := func() *generation {
		g := &generation{values: []secrets.Value{{Name: "a", Version: 1, Text: []byte("hunter2")}, {Name: "b", Err: errors.New("gone")}}, holders: 1}
		return g
	}
	first := same()
	first.redactor = newRedactor([]string{"hunter2"})
	if got := redactorOf(same().values, first); got != first.redactor {
		t.Error("got a new redactor for the same values, want the earlier one")
	}
	other := same()
	other.values[0].Text = []byte("hunter3")
	if got := redactorOf(other.values, first); got == first.redactor || got.text("hunter3") != redacted {
		t.Errorf("another value: %+v", got)
	}
}

// A function that reads secrets which change all the time makes the server hold little.
func TestRunIsBounded(t *testing.T) {
	t.Parallel()
	r := &Run{vault: &Vault{}}
	refused := false
	for n := 0; n < 1000 && !refused; n++ {
		value := fmt.Sprint(n) + strings.Repeat("\x01", api.MaxSecretBytes-4)
		refused = r.keep(&generation{redactor: newRedactor([]string{value}), holders: 1}) != nil
	}
	if !refused {
		t.Error("all of them are held")
	}
}
