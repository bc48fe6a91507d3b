package regex

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// groups returns the texts of a match, "-" for a group without one.
func groups(t *testing.T, pattern, flags, text string) []string {
	t.Helper()
	f, ok := ParseFlags(flags)
	if !ok {
		t.Fatalf("ParseFlags(%q) = false, want true", flags)
	}
	p, err := Compile(utf16.Encode([]rune(pattern)), f)
	if err != nil {
		t.Fatalf("Compile(%q): %v", pattern, err)
	}
	in := utf16.Encode([]rune(text))
	m, err := p.Match(in, 0, false, nil)
	if err != nil {
		t.Fatalf("Match(%q): %v", text, err)
	}
	if m == nil {
		return nil
	}
	out := []string{}
	for i := 0; i < len(m); i += 2 {
		if m[i] < 0 {
			out = append(out, "-")
			continue
		}
		out = append(out, string(utf16.Decode(in[m[i]:m[i+1]])))
	}
	return out
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, flags, text string
		want                 []string // nil: no match
	}{
		{`abc`, "", "xabcx", []string{"abc"}},
		{`a|ab`, "", "abc", []string{"a"}},
		{`((a)|(ab))((c)|(bc))`, "", "abc", []string{"abc", "a", "a", "-", "bc", "-", "bc"}},
		{`a[a-z]{2,4}`, "", "abcdefghi", []string{"abcde"}},
		{`a[a-z]{2,4}?`, "", "abcdefghi", []string{"abc"}},
		{`(aa|aabaac|ba|b|c)*`, "", "aabaac", []string{"aaba", "ba"}},
		{`(z)((a+)?(b+)?(c))*`, "", "zaacbbbcac", []string{"zaacbbbcac", "z", "ac", "a", "-", "c"}},
		{`(a*)*`, "", "b", []string{"", "-"}},
		{`(?=(a+))a*b\1`, "", "baaabac", []string{"aba", "a"}},
		{`(.*?)a(?!(a+)b\2c)\2(.*)`, "", "baaabaac", []string{"baaabaac", "ba", "-", "abaac"}},
		{`(?<=\$)\d+(\.\d*)?`, "", "cost $10.50", []string{"10.50", ".50"}},
		{`(?<=(\d+)(\d+))$`, "", "1053", []string{"", "1", "053"}},
		{`(?<!a)b`, "", "abb", []string{"b"}},
		{`\bfoo\b`, "", "a foo b", []string{"foo"}},
		{`^b$`, "m", "a\nb\nc", []string{"b"}},
		{`a.c`, "", "a\nc", nil},
		{`a.c`, "s", "a\nc", []string{"a\nc"}},
		{`ABC`, "i", "xabc", []string{"abc"}},
		{`[^x]`, "i", "X", nil},
		{`ſ`, "i", "s", nil},
		{`ſ`, "iu", "s", []string{"s"}},
		{`\u{1F600}+`, "u", "a😀😀", []string{"😀😀"}},
		{`^.$`, "u", "😀", []string{"😀"}},
		{`^.$`, "", "😀", nil},
		{`^[\p{L}]+$`, "u", "Ünïcode", []string{"Ünïcode"}},
		{`^[\p{L}]+$`, "u", "Ünïcode1", nil},
		{`\P{Lu}+`, "u", "ABcd", []string{"cd"}},
		{`\p{Script=Greek}`, "u", "aβ", []string{"β"}},
		{`[\p{L}--[a-z]]+`, "v", "abcÜD", []string{"ÜD"}},
		{`[[a-z]&&[aeiou]]+`, "v", "xyzea", []string{"ea"}},
		{`^\p{RGI_Emoji}$`, "v", "👨‍👩‍👧", []string{"👨‍👩‍👧"}},
		{`[\q{abc|d}x]`, "v", "zabc", []string{"abc"}},
		{`(?<year>\d{4})-(?<month>\d\d)`, "", "on 2024-05", []string{"2024-05", "2024", "05"}},
		{`(?<y>\d{4})|(?<y>\d\d)\k<y>`, "", "1212", []string{"1212", "1212", "-"}},
		{`(?:(?<x>a)|(?<x>b))\k<x>`, "", "abb", []string{"bb", "-", "b"}},
		{`(?i:a)b`, "", "Ab", []string{"Ab"}},
		{`(?i:a)b`, "", "AB", nil},
		{`(?-i:a)b`, "i", "aB", []string{"aB"}},
		{`x{0}y`, "", "xy", []string{"y"}},
		{`(?:a?)*?$`, "", "aa", []string{"aa"}},
		{`\0`, "", "\x00", []string{"\x00"}},
		{`\101`, "", "A", []string{"A"}},
		{`a{`, "", "a{", []string{"a{"}},
		{`\c`, "", `\c`, []string{`\c`}},
		{`[\c]`, "", `c`, []string{`c`}},
		{`(?=a)*b`, "", "b", []string{"b"}},
		{`(?:(\d)|(\w))+`, "", "1a", []string{"1a", "-", "a"}},
	} {
		if diff := cmp.Diff(tt.want, groups(t, tt.pattern, tt.flags, tt.text)); diff != "" {
			t.Errorf("/%s/%s on %q (-want +got):\n%s", tt.pattern, tt.flags, tt.text, diff)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, flags string }{
		{`(`, ""}, {`)`, ""}, {`[a`, ""}, {`a**`, ""}, {`*`, ""}, {`a{2,1}`, ""}, {`[b-a]`, ""}, {`\`, ""},
		{`{`, "u"}, {`]`, "u"}, {`\a`, "u"}, {`\1`, "u"}, {`\p{Nope}`, "u"}, {`\p{L`, "u"}, {`(?=a)*`, "u"}, {`(?<=a)*`, ""},
		{`(?<a>.)(?<a>.)`, ""}, {`(?<a`, ""}, {`(?<1>a)`, ""}, {`(?<a>.)\k<b>`, ""}, {`\k<a>`, "u"},
		{`(?ii:a)`, ""}, {`(?i-i:a)`, ""}, {`(?-:a)`, ""}, {`(?g:a)`, ""}, {`[a--b&&c]`, "v"}, {`[(]`, "v"}, {`[&&]`, "v"},
		{`[^\q{ab}]`, "v"}, {`\P{RGI_Emoji}`, "v"}, {`\p{RGI_Emoji}`, "u"}, {`\u{110000}`, "u"}, {`[\d-z]`, "u"},
		{strings.Repeat("(", 600) + strings.Repeat(")", 600), ""},
	} {
		f, _ := ParseFlags(tt.flags)
		var syntax *SyntaxError
		if _, err := Compile(utf16.Encode([]rune(tt.pattern)), f); !errors.As(err, &syntax) {
			t.Errorf("Compile(/%s/%s) = %v, want a SyntaxError", tt.pattern, tt.flags, err)
		}
	}
	for _, flags := range []string{"gg", "x", "uv"} {
		if _, ok := ParseFlags(flags); ok {
			t.Errorf("ParseFlags(%q) = true, want false", flags)
		}
	}
}

func TestMatchStops(t *testing.T) {
	t.Parallel()
	p, err := Compile(utf16.Encode([]rune(`(a+)+b`)), Flags{})
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	in := utf16.Encode([]rune(strings.Repeat("a", 40) + "c"))
	polls := 0
	_, err = p.Match(in, 0, false, func() bool { polls++; return polls > 10 })
	if !errors.Is(err, ErrStopped) {
		t.Errorf("Match = %v, want %v", err, ErrStopped)
	}
}

func TestMatchLongText(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ab", 200_000)
	if got := groups(t, `^(?:ab)*$`, "", text); len(got) != 1 || got[0] != text {
		t.Errorf("got %d groups, want the whole text", len(got))
	}
}
