package domain_test

import (
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
)

func TestParse(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("a.", 112) + strings.Repeat("b", 13)
	for in, want := range map[string]string{
		"shop.example.com":           "shop.example.com",
		"Shop.EXAMPLE.com.":          "shop.example.com",
		"bücher.example":             "xn--bcher-kva.example",
		"BÜCHER.example":             "xn--bcher-kva.example",
		"bu\u0308cher.example":       "xn--bcher-kva.example", // decomposed
		"xn--bcher-kva.example":      "xn--bcher-kva.example",
		"straße.example":             "xn--strae-oqa.example",
		"shop。example。com":           "shop.example.com", // full stops of Chinese and Japanese
		"ｓｈｏｐ.example.com":           "shop.example.com",
		"r3---sn-x.example.com":      "r3---sn-x.example.com",
		"1.example.com":              "1.example.com",
		"127.0.0.1.example.com":      "127.0.0.1.example.com",
		longest:                      longest,
		"shop.example.xn--p1ai":      "shop.example.xn--p1ai",
		"localhost.example.com":      "localhost.example.com",
		"a.b.c.d.e.f.g.h.i.j.k.l.me": "a.b.c.d.e.f.g.h.i.j.k.l.me",
	} {
		got, err := domain.Parse(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %q, %v, want %q", in, got, err, want)
		}
		if again, err := domain.Parse(got); err != nil || again != got {
			t.Errorf("Parse(%q) = %q, %v, want it unchanged", got, again, err)
		}
	}
	if len(longest) != domain.MaxLength {
		t.Errorf("got a longest name of %d bytes, want MaxLength, %d", len(longest), domain.MaxLength)
	}
	for _, in := range []string{
		"", ".", "..", "com", "com.", "localhost", "a.localhost", "LOCALHOST.", "a.localhost.", "shop..example.com", ".example.com", "shop.example.com..",
		"127.0.0.1", "127.0.0.1.", "127.1", "0x7f.0x1", "1.2.3.0x", "a.0x7f", "a.1", "①②⑦.0.0.1", "127。0。0。1", "::1", "[::1]", "::ffff:127.0.0.1", "fe80::1%eth0",
		"shop.example.com:443", "https://shop.example.com", "shop.example.com/", "*.example.com", "_sous-challenge.example.com", "a_b.example.com", "shop .example.com", " shop.example.com",
		"shop.example.com\n", "shop.example\x00.com", "-a.example.com", "a-.example.com", "xn--.example.com", "xn--a.example.com", "xn--zzzzzz99999.example.com", "a\u200d.example.com", "\u202eshop.example.com",
		"shop@example.com", "shop.example.com?x", "shop%2eexample.com", "a{b}.example.com", "t:x.example.com", "0.\xff",
		longest + "b", strings.Repeat("a", 64) + ".example.com", strings.Repeat("ü.", 5000),
	} {
		if got, err := domain.Parse(in); api.ErrorCode(err) != api.CodeValidationName || got != "" {
			t.Errorf("Parse(%q) = %q, %v, want %s", in, got, err, api.CodeValidationName)
		}
	}
}

// TestParseNamesTheRule: the error of a name that is too long says so, and quotes whole characters.
func TestParseNamesTheRule(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		strings.Repeat("a.", 112) + strings.Repeat("b", 14): "must have at most 237 bytes",
		strings.Repeat("a", 64) + ".example.com":            "must have labels of 1 to 63 letters",
		"a." + strings.Repeat("é", 40) + "/":                `é…" must be the name of a domain`,
	} {
		if _, err := domain.Parse(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): got error %v, want %q", in, err, want)
		}
	}
}

// FuzzParse: each name that is accepted is a host in its only form.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"shop.example.com", "bücher.example", "xn--bcher-kva.example", "127.0.0.1", "a。b", "A.B.", "[::1]", "a.0x1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		name, err := domain.Parse(in)
		if err != nil {
			return
		}
		again, err := domain.Parse(name)
		if err != nil || again != name {
			t.Errorf("Parse(%q) = %q, and Parse of that %q, %v, want it unchanged", in, name, again, err)
		}
		if len(name) > domain.MaxLength || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || !strings.Contains(name, ".") || strings.HasSuffix(name, ".") {
			t.Errorf("Parse(%q) = %q, want a host of lower-case ASCII with a dot", in, name)
		}
	})
}

func TestReserved(t *testing.T) {
	t.Parallel()
	own := domain.Reserved{"apps.example.com", "", "api.example.org"}
	for name, want := range map[string]bool{
		"apps.example.com": true, "x.apps.example.com": true, "a.b.apps.example.com": true, "api.example.org": true,
		"xapps.example.com": false, "example.com": false, "apps.example.com.evil.example": false, "shop.example.org": false,
	} {
		if got := own.Covers(name); got != want {
			t.Errorf("Covers(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	good := domain.Target{Namespace: "default", Function: "shop"}
	if got := good.WithDefaults(); got.Ref() != (api.Ref{Alias: api.DefaultAlias}) || got.Validate() != nil {
		t.Errorf("WithDefaults() = %+v with %v, want a valid one with the alias %s", got, got.Validate(), api.DefaultAlias)
	}
	for _, bad := range []domain.Target{
		{Function: "shop", Alias: "prod"}, {Namespace: "default", Alias: "prod"}, {Namespace: "default", Function: "shop", Alias: "prod", Version: 1},
		{Namespace: "default", Function: "shop", Alias: "UP"}, {Namespace: "default", Function: "shop", Version: -1}, {Namespace: "a/b", Function: "shop", Alias: "prod"},
	} {
		if bad.Validate() == nil {
			t.Errorf("Validate of %+v = nil, want an error", bad)
		}
	}
}
