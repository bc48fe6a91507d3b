package command

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
)

// fieldFlags are the flags whose names differ from those of the fields of requests that they
// set by more than the unit.
var fieldFlags = map[string]string{
	"run_at_ms": "in", "expire_at_ms": "expires", "expires_at_ms": "expires", "unique_ttl_ms": "unique-for",
	"tags": "tag", "types": "type", "tag_value": "tag", "from_ms": "since", "roles": "role", "functions": "function", "ref": "function",
	"overlap_policy": "overlap", "activity_map": "activity", "max_inflight_tasks": "max-inflight",
	"cron": "cron", "timezone": "timezone", "ifRevision": "if-revision", "keyPrefix": "prefix",
}

// dataFlags have fields as their values. A field that another flag could set may be theirs.
var dataFlags = []string{"options", "callback-options", "config"}

// fieldName matches the words of a message that may be the name of a field: those with an
// underscore, and those that fieldFlags lists.
var fieldName = regexp.MustCompile(`(^|[^-\w.])(cron|timezone|[a-z]+(_[a-z]+)+)\b`)

// remoteNames matches the flags whose values also come from variables and profiles.
var remoteNames = regexp.MustCompile(`^(url|key|tenant|namespace|profile)$`)

// nameFlags replaces the names of fields in f by the flags of the command that set them: the
// user of a command does not know the request.
//
//	every_seconds must be from 1 to …, or cron must be given in its place
//	--every must be from 1 to …, or --cron must be given in its place
func (f *failure) nameFlags(flags *pflag.FlagSet) {
	if flags == nil || len(f.Errors) == 0 {
		return
	}
	f.Errors = slices.Clone(f.Errors)
	f.Message = strings.TrimLeft(strings.TrimPrefix(f.Message, onlyJob), ".: ") // commands enqueue one job
	for i, e := range f.Errors {
		e.Path = strings.TrimPrefix(e.Path, onlyJob+".")
		path := flagPath(flags, e)
		if rest, ok := strings.CutPrefix(f.Message, e.Path); ok && i == 0 {
			f.Message = path + rest
		}
		message := withFlags(flags, e.Message)
		if flag := flags.Lookup(strings.TrimPrefix(path, "--")); flag != nil && flag.Value.Type() == "duration" {
			message = exactAmount.ReplaceAllString(message, "$1")
			f.Message = strings.Replace(f.Message, e.Message, exactAmount.ReplaceAllString(e.Message, "$1"), 1)
		}
		f.Errors[i].Path, f.Errors[i].Message = path, message
	}
	f.Message = withFlags(flags, f.Message)
}

const onlyJob = "jobs[0]"

// exactAmount matches a duration in the unit of a field, and the form in which people write it.
var exactAmount = regexp.MustCompile(`[0-9,]+ m?s \(([^()]+)\)`)

// withFlags returns text with flags in place of the names of fields.
func withFlags(flags *pflag.FlagSet, text string) string {
	return fieldName.ReplaceAllStringFunc(text, func(found string) string {
		before, word := "", found
		if first := found[0]; first < 'a' || first > 'z' {
			before, word = found[:1], found[1:]
		}
		if flag := flagOf(flags, word); flag != "" {
			return before + "--" + flag
		}
		return found
	})
}

// flagPath returns the path of e as the user gave it: a flag, a field within the value of a
// flag, or the path itself.
func flagPath(flags *pflag.FlagSet, e api.FieldError) string {
	if e.Line > 0 {
		return e.Path
	}
	first, rest, nested := strings.Cut(e.Path, ".")
	if nested && slices.Contains(dataFlags, first) && flags.Changed(first) {
		return "--" + first + " " + rest
	}
	parts := strings.FieldsFunc(e.Path, func(r rune) bool { return strings.ContainsRune(".[]0123456789", r) })
	for i, part := range slices.Backward(parts) {
		if flag := flagOf(flags, part); flag != "" {
			return strings.Join(append([]string{"--" + flag}, parts[i+1:]...), " ") // --tag color
		}
	}
	return e.Path
}

// flagOf returns the flag of a command that sets a field, "" if it has none. A flag without a
// value counts if the field could not come from elsewhere: the message may demand it.
func flagOf(flags *pflag.FlagSet, field string) string {
	name := strings.ReplaceAll(field, "_", "-")
	for _, unit := range []string{"-ms", "-seconds", "Seconds", "-id"} {
		name = strings.TrimSuffix(name, unit)
	}
	for _, candidate := range []string{fieldFlags[field], strings.ReplaceAll(field, "_", "-"), name} {
		flag := flags.Lookup(candidate)
		if flag == nil || flag.Hidden {
			continue
		}
		elsewhere := slices.ContainsFunc(dataFlags, flags.Changed) || remoteNames.MatchString(candidate)
		if flag.Changed || !elsewhere {
			return candidate
		}
	}
	return ""
}
