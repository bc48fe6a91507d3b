package api_test

import (
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

func TestNamesOfTheDocumentStorage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 64)
	for _, tc := range []struct {
		name     string
		validate func(string) error
		good     []string
		bad      []string
	}{
		{
			"installs", api.ValidateInstall,
			[]string{"a", "A1", "crm.v2_x-1", "fnord", "usage", "fn", strings.Repeat("i", 64), "fn.payments.hello", "fn." + long + "." + long},
			[]string{"", ".a", "-a", "a b", "a:b", "a/b", "a{b", "é", strings.Repeat("i", 65), "fn.", "fn.x", "fn.pay.", "fn.payments.Hello", "fn.payments.hello.more", "fn." + long + "n." + long},
		},
		{
			"namespaces", api.ValidateDocumentNamespace,
			[]string{"a", "0", "settings", "a_b-c", long},
			[]string{"", "_a", "-a", "A", "a.b", "a:b", "a/b", "a b", "é", long + "n"},
		},
		{
			"keys", api.ValidateDocumentKey,
			[]string{"a", ".", "..", "a:b", "a{b}", " ", "é", "\u2028", strings.Repeat("\U0001f600", 128)},
			[]string{"", "a/b", "/", "\x00", "a\nb", "\x7f", "\u0085", "\xff", strings.Repeat("k", 129), strings.Repeat("\U0001f600", 129)},
		},
		{"prefixes", api.ValidateDocumentPrefix, []string{"", "a"}, []string{"a/", "\xff", strings.Repeat("k", 129)}},
	} {
		for _, s := range tc.good {
			if err := tc.validate(s); err != nil {
				t.Errorf("%s: %q: got error %v, want none", tc.name, s, err)
			}
		}
		for _, s := range tc.bad {
			if err := tc.validate(s); api.ErrorCode(err) != api.CodeDocumentInvalid {
				t.Errorf("%s: %q: got error %v, want CodeDocumentInvalid", tc.name, s, err)
			}
		}
	}
}

func TestInstallOfReadsWhatFunctionInstallWrites(t *testing.T) {
	t.Parallel()
	if ns, fn, ok := api.InstallOf(api.FunctionInstall("payments", "hello")); ns != "payments" || fn != "hello" || !ok {
		t.Errorf("InstallOf: got namespace %q, function %q and %v, want payments, hello and true", ns, fn, ok)
	}
	if ns, fn, ok := api.InstallOf("fn.payments"); ns+fn != "" || ok {
		t.Errorf("InstallOf(fn.payments): got namespace %q, function %q and %v, want none and false", ns, fn, ok)
	}
}

func TestInstallsLetTheFunctionsThatTheyList(t *testing.T) {
	t.Parallel()
	install := api.Install{Install: "crm", Functions: []string{"payments/hello", "ops-team/*"}}
	if err := install.Validate(); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	for _, tc := range []struct {
		namespace, function string
		want                bool
	}{{"payments", "hello", true}, {"payments", "other", false}, {"ops-team", "any", true}, {"ops", "any", false}, {"payments", "*", false}} {
		if got := install.Allows(tc.namespace, tc.function); got != tc.want {
			t.Errorf("Allows(%s, %s) = %v, want %v", tc.namespace, tc.function, got, tc.want)
		}
	}
	for _, bad := range []api.Install{
		{Install: "fn.payments.hello"},
		{Install: "a b"},
		{Install: "crm", Description: strings.Repeat("x", 1025)},
		{Install: "crm", Description: "a\nb"},
		{Install: "crm", Functions: []string{"hello"}},
		{Install: "crm", Functions: []string{"payments/**"}},
		{Install: "crm", Functions: []string{"*/hello"}},
		{Install: "crm", Functions: make([]string, 101)},
	} {
		if err := bad.Validate(); api.ErrorCode(err) != api.CodeDocumentInvalid {
			t.Errorf("Validate of %+v: got error %v, want CodeDocumentInvalid", bad, err)
		}
	}
}
