package vault

import (
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
		r.keep(&generation{redactor: newRedactor([]string{value}, nil), holders: 1})
	}
	if got, _ := r.Line([]byte("it is hunter2 and its new end, was hunter2"), nil); string(got) != "it is ***, was ***" {
		t.Errorf(`Line = %s, want "it is ***, was ***"`, got)
	}
}

// valuesOf are the values of secrets.
func valuesOf(texts ...string) []secrets.Value {
	var values []secrets.Value
	for _, text := range texts {
		values = append(values, secrets.Value{Text: []byte(text)})
	}
	return values
}

// Versions with the same values share one redactor, which is forgotten with the last of them.
func TestRedactorsAreShared(t *testing.T) {
	t.Parallel()
	made := 0
	build := func(texts []string) *redactor {
		made++
		return newRedactor(texts, nil)
	}
	all := newSharedRedactors()
	var held []*sharedRedactor
	for range 60 {
		held = append(held, all.of(valuesOf("hunter2", "other"), build))
	}
	one := all.size()
	differ := all.of(valuesOf("hunter2o", "t"+"her"), build) // the same bytes in a row
	if made != 2 || held[0] != held[59] || differ == held[0] || all.size() < 2*one || one == 0 {
		t.Errorf("60 uses of the same values and one of others: made %d redactors of %d bytes, want 2", made, all.size())
	}
	for _, one := range append(held, differ) {
		one.release()
	}
	if len(all.known) != 0 || all.size() != 0 {
		t.Errorf("without users: got %d redactors of %d bytes, want none", len(all.known), all.size())
	}
}

// A redactor that was forgotten and is made again is no change of the secrets: an instance that
// has read them is not retired.
func TestRunKnowsTheSameValues(t *testing.T) {
	t.Parallel()
	r := &Run{vault: &Vault{}}
	for range 2 {
		if err := r.keep(&generation{redactor: newRedactor([]string{"hunter2"}, nil), holders: 1}); err != nil {
			t.Fatalf("keep = %v, want nil", err)
		}
	}
	if _, changed := r.End(); changed {
		t.Error("End reports a change of the secrets, want none for equal values")
	}
}

// A function that reads secrets which change all the time makes the server hold little.
func TestRunIsBounded(t *testing.T) {
	t.Parallel()
	r := &Run{vault: &Vault{}}
	refused := false
	for n := 0; n < 1000 && !refused; n++ {
		value := fmt.Sprint(n) + strings.Repeat("\x01", api.MaxSecretBytes-4)
		refused = r.keep(&generation{redactor: newRedactor([]string{value}, nil), holders: 1}) != nil
	}
	if !refused {
		t.Error("all of them are held")
	}
}
