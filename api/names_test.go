package api_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
)

// TestNamesMatchTheirPatterns holds the hand-written checks to the patterns that
// the API's document shows.
func TestNamesMatchTheirPatterns(t *testing.T) {
	t.Parallel()
	for field, tc := range map[string]struct {
		pattern  string
		validate func(string) error
	}{
		"tenant": {api.TenantPattern, api.ValidateTenant},
		"name":   {api.NamePattern, func(s string) error { return api.ValidateName("name", s) }},
		"alias":  {api.AliasPattern, api.ValidateAlias},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			pattern := regexp.MustCompile(`\A` + tc.pattern + `\z`)
			check := func(fatalf func(string, ...any), s string) {
				if err := tc.validate(s); (err == nil) != pattern.MatchString(s) {
					fatalf("%q: %v", s, err)
				} else if err != nil && api.ErrorCode(err) != api.CodeValidationName {
					fatalf("%q: code %s", s, api.ErrorCode(err))
				}
			}
			for _, head := range []string{"", "a", "z", "0", "_", "-", "A", "t_", "t_a", "T_"} {
				for n := range 70 {
					for _, tail := range []string{"a", "z", "0", "9", "_", "-", "A", "é", ":", "/", "{", "`", "\n"} {
						check(t.Errorf, head+strings.Repeat("b", n)+tail)
						check(t.Errorf, head+strings.Repeat(tail, n))
					}
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				check(t.Fatalf, rapid.OneOf(rapid.String(), rapid.StringMatching(tc.pattern)).Draw(t, "s"))
			})
		})
	}
}

func TestRefusalsSayTheRule(t *testing.T) {
	t.Parallel()
	_, version := api.ParseVersion("01")
	_, draft := api.DraftTimeMS("x")
	for want, err := range map[string]error{
		`tenant "x" must be t_ and 6 to 32 more characters: a to z and 0 to 9`: api.ValidateTenant("x"),
		`version "01" must be a positive integer without sign or leading zero`: version,
		`version "-1" must be a positive integer without sign or leading zero`: api.Ref{Version: -1}.Validate(),
		`activation_id "x" must be a UUID in lower case`:                       api.ValidateActivationID("x"),
		`draft_id "x" must be drf_ and a ULID`:                                 draft,
	} {
		if got := err.Error(); got != "CS_VALIDATION_NAME: "+want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestRulesOfNamesAreWords: an error about a name states the rule in words and has no regular
// expression, which few users can read.
func TestRulesOfNamesAreWords(t *testing.T) {
	t.Parallel()
	const (
		name  = "must have 1 to 64 characters: a to z, 0 to 9, _ and -, and begin with a letter"
		alias = "must have 1 to 32 characters: a to z, 0 to 9, _ and -, and begin with a letter"
		id    = " characters: A to Z, a to z, 0 to 9, ., _ and -, and begin with a letter or a digit"
		ref   = "must have a version from 1 on, or an alias, which " + alias
	)
	schedule := func(ref *api.JobTarget, queue *api.ScheduleQueue) error {
		s := api.Schedule{Name: "nightly", EverySeconds: 60, OverlapPolicy: api.OverlapSkip, Catchup: api.CatchupNone, MaxCatchupTicks: 1, Ref: ref, Queue: queue}
		return s.Validate()
	}
	binding := func(target api.JobTarget) error {
		b := api.WorkerBinding{Name: "mail", Domain: "d", Tasklist: "t", ActivityMap: map[string]api.JobTarget{"Send": target}}
		b.Normalize()
		return b.Validate()
	}
	for of, tc := range map[string]struct {
		err  error
		want string
	}{
		"function":           {api.ValidateName("function", "Mail"), name},
		"alias":              {api.ValidateAlias("Prod"), alias},
		"secret":             {api.ValidateSecretName("9"), "must have 1 to 64 characters: A to Z, a to z, 0 to 9, _, . and -, and begin with a letter or _"},
		"queue":              {api.ValidateQueue("Mail"), "must be fn. and the name of a function, or have 1 to 64 characters: a to z, 0 to 9, _ and -, and begin with a letter"},
		"task":               {api.ValidateTaskID("a/b"), "must have 1 to 128" + id},
		"install":            {api.ValidateInstall("a/b"), "must have 1 to 64" + id},
		"document namespace": {api.ValidateDocumentNamespace("A"), "must have 1 to 64 characters: a to z, 0 to 9, _ and -, and begin with a letter or a digit"},
		"job's function":     {(&api.NewJob{JobOptions: api.JobOptions{Target: &api.JobTarget{Function: "Mail", Alias: "prod"}}}).Validate(0), name},
		"schedule's ref":     {schedule(&api.JobTarget{Function: "mail", Alias: "Prod"}, nil), ref},
		"schedule's target":  {schedule(&api.JobTarget{Function: "Mail", Alias: "prod"}, nil), name},
		"schedule's queue":   {schedule(nil, &api.ScheduleQueue{Name: "Mail"}), name},
		"binding's ref":      {binding(api.JobTarget{Function: "mail", Alias: "Prod"}), ref},
		"binding's function": {binding(api.JobTarget{Function: "Mail", Alias: "prod"}), name},
	} {
		var refused *api.Error
		if !errors.As(tc.err, &refused) || len(refused.Fields) != 1 || refused.Fields[0].Message != tc.want || !strings.HasSuffix(refused.Message, tc.want) {
			t.Errorf("%s: got %+v, want the rule %q in the message and its field", of, tc.err, tc.want)
		}
	}
}
