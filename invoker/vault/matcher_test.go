package vault

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func matcherOf(texts ...string) *matcher {
	var forms []form
	for _, text := range texts {
		forms = append(forms, newForm(text))
	}
	return newMatcher(forms)
}

// TestMatcherAgreesWithReplacer compares the matcher with strings.Replacer on random forms and
// texts of few letters, so that forms begin with, contain and overlap each other.
func TestMatcherAgreesWithReplacer(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		b := make([]byte, minFormBytes+random.IntN(most))
		for n := range b {
			b[n] = "ab"[random.IntN(2)*random.IntN(2)]
		}
		return string(b)
	}
	found := 0
	for range 2000 {
		var forms []string
		for range 1 + random.IntN(20) {
			forms = append(forms, word([]int{4, 40, 100}[random.IntN(3)]))
		}
		slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
		var pairs []string
		for _, form := range forms {
			pairs = append(pairs, form, redacted)
		}
		text := word(200) + forms[0] + word(10) + forms[len(forms)/2] + word(10)
		want := strings.NewReplacer(pairs...).Replace(text)
		got, searched := matcherOf(forms...).replace(text, nil)
		if got != want || !searched {
			t.Fatalf("replace(%q) of %q = %q, %t, want %q, true", text, forms, got, searched, want)
		}
		found += strings.Count(got, redacted)
	}
	if found < 1000 {
		t.Errorf("got %d forms in all texts, want enough to compare", found)
	}
}

// TestMatcherIsBounded: secrets and text that were made to be slow cost a bounded number of
// steps, pause in between, and show nothing.
func TestMatcherIsBounded(t *testing.T) {
	t.Parallel()
	var forms []string
	for n := range maxRedactedForms {
		forms = append(forms, strings.Repeat("a", anchorBytes+n/64)+fmt.Sprintf("%04d", n))
	}
	m := matcherOf(forms...)
	text := strings.Repeat("a", 64<<10)
	pauses := 0
	s := m.search(text, func() { pauses++ })
	for i := s.next(0); i >= 0 && s.steps >= 0; i = s.next(i + 1) {
		s.at(i)
	}
	if s.steps < -2*anchorBytes {
		t.Errorf("search: got %d steps more than its bound, want at most %d", -s.steps, 2*anchorBytes)
	}
	if want := (stepsAtLeast + stepsPerByte*len(text)) / pauseSteps / 2; pauses < want {
		t.Errorf("got %d pauses, want at least %d", pauses, want)
	}
	if got, searched := m.replace(text, nil); got != redacted || searched {
		t.Errorf("replace = %.20q, %t, want %q, false", got, searched, redacted)
	}
	if got := m.size(); got > 2<<20 {
		t.Errorf("got %d bytes for %d forms, want at most 2 MiB", got, len(forms))
	}
}

// TestMatcherOfLongSecretsIsSmall: the size depends on the number of forms, not on their length.
func TestMatcherOfLongSecretsIsSmall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 2048)
	m := matcherOf(long, long+"x", "x"+long)
	if m.size() > 1<<10 {
		t.Errorf("got %d bytes, want at most 1 KiB", m.size())
	}
	if got, _ := m.replace("-"+long+"x-x"+long+"-"+long[1:], nil); got != "-***-***-"+long[1:] {
		t.Errorf("replace = %.60q, want both forms replaced and the part left", got)
	}
}
