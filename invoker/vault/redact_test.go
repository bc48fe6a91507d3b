package vault

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

const pem = "-----BEGIN KEY-----\nMIIBOgIBAAJBAKj34GkxFhD9\r\n  0vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu \nabc\n-----END KEY-----\n"

// Every form in which a value is commonly written is found, wherever it stands.
func TestRedactor(t *testing.T) {
	t.Parallel()
	const odd = "p\"w\\d/ü\u2028<&> +'()!*~=%\x01\t€"
	asJSON := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("json.Marshal: %v", err)
		}
		return string(b)
	}
	plain, err := api.EncodeJSON(odd)
	if err != nil {
		t.Fatalf("EncodeJSON(%q): %v", odd, err)
	}
	plainJSON := string(plain)
	b64 := base64.StdEncoding.EncodeToString
	r := newRedactor([]string{"sk_live_4eC39Hq", odd, pem, "ab", "abcd", " k3y!/pä ss\"w' "}, nil)
	for text, want := range map[string]string{
		"":                                 "",
		"nothing here":                     "nothing here",
		"sk_live_4eC39Hq":                  "***",
		"a sk_live_4eC39Hq, sk_live_4eC39": "a ***, sk_live_4eC39",
		"sk_live_4eC39Hqsk_live_4eC39Hq":   "******",
		"sk_live_sk_live_4eC39Hq":          "sk_live_***",
		"is " + odd + " it":                "is *** it",
		"ab abc abcd":                      "ab abc ***",
		asJSON(odd):                        `"***"`,
		plainJSON:                          `"***"`,
		asJSON(map[string]string{"a": odd, "b": "c"}):                           `{"a":"***","b":"c"}`,
		asJSON(map[string]string{"body": asJSON(odd)}):                          `{"body":"\"***\""}`,
		strings.ReplaceAll(plainJSON, `\u2028`, "\u2028"):                       `"***"`,
		"https://h/?q=" + url.QueryEscape(odd):                                  "https://h/?q=***",
		"https://h/" + url.PathEscape(odd) + "/":                                "https://h/***/",
		"p%22w%5Cd%2F%C3%BC%E2%80%A8%3C%26%3E%20%2B'()!*~%3D%25%01%09%E2%82%AC": "***", // encodeURIComponent
		b64([]byte("sk_live_4eC39Hq")):                                          "***",
		base64.URLEncoding.EncodeToString([]byte(odd)):                          "***",
		base64.RawStdEncoding.EncodeToString([]byte(odd)) + ".":                 "***.",
		"key MIIBOgIBAAJBAKj34GkxFhD9 and abc":                                  "key *** and abc",
		pem:                                                                     "***",
		asJSON(strings.Split(pem, "\n")[0]):                                     `"***"`,
		"{ key: 'p\"w\\\\d/ü\u2028<&> +\\'()!*~=%\x01\t€' }":                    "{ key: '***' }", // console.log({ key })
		"    0vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu":                          "    ***",
		"k3y!/pä ss\"w'":                                                        "***",  // trimmed
		"k3y!/p%C3%A4%20ss%22w'":                                                "***",  // encodeURI
		"k3y!/p%C3%A4%20ss%22w%27&":                                             "***&", // new URL, in its query
	} {
		if got, searched := r.text(text, nil); got != want || !searched {
			t.Errorf("text(%q) = %q, %t, want %q, true", text, got, searched, want)
		}
		if got, searched := r.line([]byte(text), nil); string(got) != want || !searched {
			t.Errorf("line(%q) = %q, %t, want %q, true", text, got, searched, want)
		}
	}
	// In base64 of something longer, as Basic authorization has it.
	for before := range 4 {
		for after := range 4 {
			text := b64([]byte(strings.Repeat("u", before) + "sk_live_4eC39Hq" + strings.Repeat("x", after)))
			got, _ := r.text(text, nil)
			if !strings.Contains(got, "***") || len(got) > len("***")+before*2+after*2+8 {
				t.Errorf("%d bytes before and %d after: %s became %s, want *** and no more than what surrounds the secret", before, after, text, got)
			}
		}
	}
}

func TestRedactorOfNothing(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{nil, {""}, {"abc", "ü€x"}, {"a\nb\nc"[:3]}} {
		if r := newRedactor(values, nil); r != nil {
			t.Errorf("redactor of %q: got forms %v, want no redactor", values, r.matcher.forms)
		}
	}
	var none *redactor
	e := &api.ActivationError{Message: "m"}
	text, _ := none.text("a", nil)
	line, _ := none.line([]byte("a"), nil)
	if text != "a" || none.truncated("a", 0, nil) != "a" || string(line) != "a" || none.failure(e, nil) != e || none.size() != 0 {
		t.Errorf("a nil redactor: got %q, %q and %+v, want no change", text, line, none.failure(e, nil))
	}
}

// What was cut may end in the beginning of a secret.
func TestRedactorOfWhatWasCut(t *testing.T) {
	t.Parallel()
	r := newRedactor([]string{strings.Repeat("0123456789", 100), "abcdefgh"}, nil)
	whole := strings.Repeat(".", 1000) + strings.Repeat("0123456789", 100)
	for _, n := range []int{1004, 1500, 1999} {
		if got := r.truncated(whole[:n], n, nil); got != strings.Repeat(".", 1000)+"***" {
			t.Errorf("truncated at %d: got %s, want the dots and ***", n, got[990:])
		}
		if got := r.truncated(whole[:n], n+100, nil); got != whole[:n] {
			t.Errorf("truncated without a cut: got %s, want no change", got[990:])
		}
	}
	e := &api.ActivationError{Type: api.ErrException, Message: "x abcdefgh", Stack: "at abcdefgh", Code: "abcdefgh"}
	if got := r.failure(e, nil); *got != (api.ActivationError{Type: api.ErrException, Message: "x ***", Stack: "at ***", Code: "***"}) || e.Code != "abcdefgh" {
		t.Errorf("failure: got %+v of %+v, want *** in place of the secret, in a copy", got, e)
	}
}

// A value of many lines is no way to make the server hold much.
func TestRedactorIsBounded(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, "\"%d<\n", i+100)
	}
	r := newRedactor([]string{lines.String(), lines.String() + "x", "the one that matters"}, nil)
	if len(r.matcher.forms) > maxRedactedForms || r.size() > 1<<20 {
		t.Errorf("got %d forms and %d bytes, want at most %d and 1 MiB", len(r.matcher.forms), r.size(), maxRedactedForms)
	}
	if got, _ := r.text("it is the one that matters", nil); got != "it is ***" {
		t.Errorf(`r.text = %v, want "it is ***"`, got)
	}
}

func BenchmarkRedactor(b *testing.B) {
	line := []byte(`{"level":"info","order":"o-1234","amount":4200,"note":"` + strings.Repeat("lorem ipsum dolor ", 20) + `"}`)
	for _, n := range []int{0, 1, 10, 100} {
		var values []string
		for i := range n {
			values = append(values, fmt.Sprintf("sk_live_%032d", i*7919))
		}
		b.Run(fmt.Sprintf("%d secrets", n), func(b *testing.B) {
			r := newRedactor(values, nil)
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				r.line(line, nil)
			}
		})
	}
}

func BenchmarkNewRedactor(b *testing.B) {
	values := []string{strings.Repeat("\x01", api.MaxSecretBytes)}
	for b.Loop() {
		newRedactor(values, nil)
	}
}
