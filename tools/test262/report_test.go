package test262

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// newer are the features of ES2022 to ES2025 that are counted apart from the language
// before them: those that issue and documentation name. Smaller ones of these editions,
// such as Object.hasOwn, class fields and static blocks, count as part of the language.
var newer = []string{
	"iterator-helpers", "resizable-arraybuffer", "arraybuffer-transfer", "regexp-v-flag",
	"regexp-match-indices", "regexp-modifiers", "regexp-duplicate-named-groups", "RegExp.escape",
	"regexp-unicode-property-escapes", "Array.fromAsync", "WeakRef", "FinalizationRegistry",
	"Float16Array", "symbols-as-weakmap-keys", "String.prototype.isWellFormed", "String.prototype.toWellFormed",
}

// later are features of ES2026 and of proposals, which are in neither figure.
var later = []string{
	"await-dictionary", "canonical-tz", "error-stack-accessor", "Error.isError", "explicit-resource-management",
	"export-defer", "immutable-arraybuffer", "import-bytes", "import-defer", "import-text",
	"iterator-chunking", "iterator-includes", "iterator-sequencing", "Iterator.prototype.join",
	"joint-iteration", "json-parse-with-source", "legacy-regexp", "Math.sumPrecise",
	"nonextensible-applies-to-private", "source-phase-imports", "source-phase-imports-module-source",
	"uint8array-base64", "upsert",
}

// The groups of the figures.
const (
	groupBase  = "without newer features"
	groupNewer = "ES2022-2025 features"
	groupLater = "later features"
)

func (c *testCase) group() string {
	in := func(names []string) bool {
		return slices.ContainsFunc(c.features, func(f string) bool { return slices.Contains(names, f) })
	}
	switch {
	case in(later):
		return groupLater
	case in(newer):
		return groupNewer
	}
	return groupBase
}

// tally counts tests.
type tally struct{ passed, all int }

func (t tally) String() string {
	return fmt.Sprintf("%6.2f%%  %5d of %5d", 100*float64(t.passed)/float64(t.all), t.passed, t.all)
}

type report struct {
	groups, features, folders map[string]tally
	failures                  []string
	skipped                   map[string]int
}

func newReport(cases []*testCase, verdicts []string) *report {
	r := &report{groups: map[string]tally{}, features: map[string]tally{}, folders: map[string]tally{}}
	for i, c := range cases {
		passed := verdicts[i] == "ok"
		add := func(to map[string]tally, key string) {
			t := to[key]
			t.all++
			if passed {
				t.passed++
			}
			to[key] = t
		}
		add(r.groups, c.group())
		for _, f := range c.features {
			add(r.features, f)
		}
		parts := strings.Split(path.Dir(c.path), "/")
		add(r.folders, strings.Join(parts[1:min(len(parts), 4)], "/"))
		if !passed {
			r.failures = append(r.failures, fmt.Sprintf("%s\t%s\t%s\t%s", c.path, c.group(), strings.Join(c.features, ","), verdicts[i]))
		}
	}
	return r
}

func (r *report) print(w io.Writer) {
	section := func(title string, counts map[string]tally) {
		fmt.Fprintf(w, "\n%s\n", title)
		for _, key := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(w, "  %s  %s\n", counts[key], key)
		}
	}
	section("by folder", r.folders)
	section("by feature", r.features)
	fmt.Fprintf(w, "\nskipped\n")
	for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(w, "  %5d  %s\n", r.skipped[why], why)
	}
	section("groups", r.groups)
}

func (r *report) writeFailures(name string) error {
	return os.WriteFile(name, []byte(strings.Join(r.failures, "\n")+"\n"), 0o644)
}

//go:embed skips.txt
var skipText string

// skips are the tests that are not run, each with a reason.
type skips struct {
	rules   []skipRule
	counted map[string]int // by reason
}

// skipRule is a line of skips.txt: a kind, a name and a reason.
type skipRule struct{ kind, name, reason string }

func readSkips(t *testing.T) *skips {
	t.Helper()
	s := &skips{counted: map[string]int{}}
	lines := bufio.NewScanner(strings.NewReader(skipText))
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, rest, _ := strings.Cut(line, " ")
		name, reason, ok := strings.Cut(rest, " ")
		if !ok || !slices.Contains([]string{"flag", "feature", "path"}, kind) {
			t.Fatalf("skips.txt: line %q, want KIND NAME REASON", line)
		}
		s.rules = append(s.rules, skipRule{kind, name, strings.TrimSpace(reason)})
	}
	return s
}

// skip reports whether the test is not run, and counts it.
func (s *skips) skip(c *testCase) bool {
	for _, rule := range s.rules {
		var hit bool
		switch rule.kind {
		case "flag":
			hit = c.has(rule.name)
		case "feature":
			hit = slices.ContainsFunc(c.features, func(f string) bool {
				return f == rule.name || strings.HasPrefix(f, rule.name+".") || strings.HasPrefix(f, rule.name+"-")
			})
		case "path":
			hit = strings.HasPrefix(c.path, rule.name)
		}
		if hit {
			s.counted[rule.reason]++
			return true
		}
	}
	return false
}
