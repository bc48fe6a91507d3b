package search

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// TagPrefix begins the names of the parameters of tags: tag.KEY=VALUE.
const TagPrefix = "tag."

// Parameter describes a parameter of a query.
type Parameter struct {
	Name, Doc string
	Number    bool     // a whole number
	Boolean   bool     // true or false
	Enum      []string // nil for any text
	List      bool     // values separated by commas, or repeated
}

// field is a parameter with the place of its value in a query.
type field[Q any] struct {
	Parameter
	of func(*Q) any // a pointer
}

func text[Q any](name, doc string, of func(*Q) *string, enum ...string) field[Q] {
	return field[Q]{Parameter{Name: name, Doc: doc, Enum: enum}, func(q *Q) any { return of(q) }}
}

func number[Q any](name, doc string, of func(*Q) *int64) field[Q] {
	return field[Q]{Parameter{Name: name, Doc: doc, Number: true}, func(q *Q) any { return of(q) }}
}

// times returns the two parameters of a range.
func times[Q any](prefix, what string, of func(*Q) *Range) []field[Q] {
	return []field[Q]{
		number(prefix+"from_ms", "only those that "+what+" at or after this time, in Unix milliseconds", func(q *Q) *int64 { return &of(q).FromMS }),
		number(prefix+"to_ms", "only those that "+what+" before it", func(q *Q) *int64 { return &of(q).ToMS }),
	}
}

// ordering returns the parameters of an order.
func ordering[Q any](sorts []string, of func(*Q) *Order) []field[Q] {
	return []field[Q]{
		text("sort", "the order; those without the time of it are left out, and rank needs q; default: created", func(q *Q) *string { return &of(q).Sort }, sorts...),
		{Parameter{Name: "order", Doc: "default: desc", Enum: []string{"asc", "desc"}}, func(q *Q) any { return (*ascending)(&of(q).Ascending) }},
		{Parameter{Name: "count", Doc: "also count the records, up to 10,000", Boolean: true}, func(q *Q) any { return &of(q).Count }},
	}
}

// ascending is the parameter order.
type ascending bool

// The documentation of parameters that jobs and activations share.
const (
	docNamespace = "default: all that the caller may enter"
	docWords     = `full-text query: words, "phrases", prefix*, AND, OR, NOT, parentheses, and column:word for one of the columns `
)

var jobFields = slices.Concat([]field[Jobs]{
	text("namespace", docNamespace, func(q *Jobs) *string { return &q.Namespace }),
	{Parameter{Name: "state", Doc: "only these states", Enum: names(api.JobStates()), List: true}, func(q *Jobs) any { return &q.States }},
	{Parameter{Name: "queue", Doc: "only these queues", List: true}, func(q *Jobs) any { return &q.Queues }},
	text("q", docWords+"id, queue, payload, tags, error, result", func(q *Jobs) *string { return &q.Words }),
	text("error", "only those whose last error has this text", func(q *Jobs) *string { return &q.Error }),
	text("worker", "only those of this worker_id", func(q *Jobs) *string { return &q.Worker }),
	text("host", "only those of a worker on this host", func(q *Jobs) *string { return &q.Host }),
	text("batch", "only those of this batch", func(q *Jobs) *string { return &q.Batch }),
	text("chain", "only those of the chain with this first job", func(q *Jobs) *string { return &q.Chain }),
	text("parent", "only those that follow this job", func(q *Jobs) *string { return &q.Parent }),
	text("function", "only those that call a function of this name", func(q *Jobs) *string { return &q.Function }),
	text("unique_key", "only those with this unique key", func(q *Jobs) *string { return &q.UniqueKey }),
	text("dead_reason", "only those that are dead for this reason", func(q *Jobs) *string { return &q.DeadReason }),
	{Parameter{Name: "priority", Doc: "only these priorities", Enum: names(api.Priorities()), List: true}, func(q *Jobs) any { return &q.Priorities }},
	{Parameter{Name: "attempts", Doc: "only those with at least so many attempts", Number: true}, func(q *Jobs) any { return &q.Attempts }},
},
	times("created_", "were created", func(q *Jobs) *Range { return &q.Created }),
	times("started_", "were started", func(q *Jobs) *Range { return &q.Started }),
	times("ended_", "ended", func(q *Jobs) *Range { return &q.Ended }),
	times("due_", "are due", func(q *Jobs) *Range { return &q.Due }),
	ordering(Sorts(), func(q *Jobs) *Order { return &q.Order }))

var activationFields = slices.Concat([]field[Activations]{
	text("namespace", docNamespace, func(q *Activations) *string { return &q.Namespace }),
	{Parameter{Name: "function", Doc: "only these functions", List: true}, func(q *Activations) any { return &q.Functions }},
	{Parameter{Name: "status", Doc: "only these statuses", List: true}, func(q *Activations) any { return &q.Statuses }},
	{Parameter{Name: "trigger", Doc: "only these triggers", List: true}, func(q *Activations) any { return &q.Triggers }},
	number("version", "only those of this version", func(q *Activations) *int64 { return &q.Version }),
	text("q", docWords+"id, function, error, result", func(q *Activations) *string { return &q.Words }),
	text("error", "only those whose error has this text", func(q *Activations) *string { return &q.Error }),
	text("error_type", "only those whose error has this type", func(q *Activations) *string { return &q.ErrorType }),
	number("min_duration_ms", "only those that took at least so long", func(q *Activations) *int64 { return &q.DurationMS }),
})

// activationSearchFields are those of the list of activations. The list takes one function, status
// and trigger.
var activationSearchFields = slices.Concat(activationFields, []field[Activations]{
	text("job", "only those that this job ran", func(q *Activations) *string { return &q.Job }),
	text("request_id", "only those of this request", func(q *Activations) *string { return &q.Request }),
},
	times("", "started", func(q *Activations) *Range { return &q.Started }),
	times("ended_", "ended", func(q *Activations) *Range { return &q.Ended }),
	ordering(ActivationSorts(), func(q *Activations) *Order { return &q.Order }))

// ActivationParameters returns the parameters of Activations that series take.
func ActivationParameters() []Parameter { return parameters(activationFields) }

// ActivationSearchParameters returns the parameters of Activations that searches take.
func ActivationSearchParameters() []Parameter { return parameters(activationSearchFields) }

// ParseActivationSearch returns the query that parameters describe. It ignores others. Errors:
// CodeInvalid.
func ParseActivationSearch(values url.Values) (Activations, error) {
	var q Activations
	err := parse(activationSearchFields, &q, values)
	return q, err
}

// SearchValues returns the parameters of q that searches take. It leaves out the id.
func (q Activations) SearchValues() url.Values { return values(activationSearchFields, &q) }

// ParseActivations returns the query that parameters describe. It ignores others. Errors:
// CodeInvalid.
func ParseActivations(values url.Values) (Activations, error) {
	var q Activations
	err := parse(activationFields, &q, values)
	return q, err
}

// Values returns the parameters of q that series take.
func (q Activations) Values() url.Values { return values(activationFields, &q) }

// JobSeriesParameters returns the parameters of Jobs but those of tags, the time of the end and the
// order.
func JobSeriesParameters() []Parameter {
	return slices.DeleteFunc(JobParameters(), func(p Parameter) bool {
		return slices.Contains([]string{"sort", "order", "count", "ended_from_ms", "ended_to_ms"}, p.Name)
	})
}

func names[T ~string](values []T) []string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// JobParameters returns the parameters of Jobs but those of tags.
func JobParameters() []Parameter { return parameters(jobFields) }

func parameters[Q any](fields []field[Q]) []Parameter {
	var out []Parameter
	for _, f := range fields {
		out = append(out, f.Parameter)
	}
	return out
}

// ParseJobs returns the query that parameters describe. It ignores others. Errors: CodeInvalid.
func ParseJobs(values url.Values) (Jobs, error) {
	var q Jobs
	if err := parse(jobFields, &q, values); err != nil {
		return q, err
	}
	for name := range values {
		key, is := strings.CutPrefix(name, TagPrefix)
		if !is {
			continue
		}
		if key == "" || len(values[name]) != 1 {
			return q, api.InvalidField(name, "must be tag.KEY with one value")
		}
		q.Tags = append(q.Tags, Tag{key, values.Get(name)})
	}
	slices.SortFunc(q.Tags, func(a, b Tag) int { return strings.Compare(a.Key, b.Key) })
	return q, nil
}

// Values returns the parameters that describe q.
func (q Jobs) Values() url.Values {
	out := values(jobFields, &q)
	for _, tag := range q.Tags {
		out.Set(TagPrefix+tag.Key, tag.Value)
	}
	return out
}

// parse sets the fields of q that values have.
func parse[Q any](fields []field[Q], q *Q, values url.Values) error {
	for _, f := range fields {
		given := values[f.Name]
		if len(given) == 0 || len(given) == 1 && given[0] == "" {
			continue
		}
		if !f.List && len(given) > 1 {
			return api.InvalidField(f.Name, "must have one value")
		}
		if f.List {
			given = strings.Split(strings.Join(given, ","), ",")
		}
		for _, v := range given {
			if f.Enum != nil && !slices.Contains(f.Enum, v) {
				return api.InvalidField(f.Name, "must be one of "+strings.Join(f.Enum, ", "))
			}
		}
		if err := set(f.of(q), given); err != "" {
			return api.InvalidField(f.Name, err)
		}
	}
	return nil
}

// ParseNumber returns the number of a parameter, 0 for "". Errors: CodeInvalid.
func ParseNumber(name, text string) (n int64, err error) {
	if text == "" {
		return 0, nil
	}
	if rule := set(&n, []string{text}); rule != "" {
		return 0, api.InvalidField(name, rule)
	}
	return n, nil
}

// set sets the value behind a pointer, and returns the rule that the texts break, "" for none.
func set(to any, texts []string) string {
	const whole = "must be a whole number that is not negative"
	var err error
	switch to := to.(type) {
	case *string:
		*to = texts[0]
	case *int64:
		*to, err = strconv.ParseInt(texts[0], 10, 64)
		if err != nil || *to < 0 {
			return whole
		}
	case *int:
		*to, err = strconv.Atoi(texts[0])
		if err != nil || *to < 0 {
			return whole
		}
	case *bool:
		*to, err = strconv.ParseBool(texts[0])
		if err != nil {
			return "must be true or false"
		}
	case *ascending:
		*to = texts[0] == "asc"
	case *[]string:
		*to = texts
	case *[]api.JobState:
		*to = typed[api.JobState](texts)
	case *[]api.Status:
		*to = typed[api.Status](texts)
	case *[]api.Priority:
		*to = typed[api.Priority](texts)
	}
	return ""
}

func typed[T ~string](texts []string) []T {
	var out []T
	for _, text := range texts {
		out = append(out, T(text))
	}
	return out
}

// values returns the parameters whose value is not the zero value.
func values[Q any](fields []field[Q], q *Q) url.Values {
	out := url.Values{}
	for _, f := range fields {
		if text := textOf(f.of(q)); text != "" {
			out.Set(f.Name, text)
		}
	}
	return out
}

// textOf returns the value behind a pointer as a parameter, "" for the zero value.
func textOf(of any) string {
	switch of := of.(type) {
	case *string:
		return *of
	case *int64:
		if *of != 0 {
			return strconv.FormatInt(*of, 10)
		}
	case *int:
		if *of != 0 {
			return strconv.Itoa(*of)
		}
	case *bool:
		if *of {
			return "true"
		}
	case *ascending:
		if *of {
			return "asc"
		}
	case *[]string:
		return strings.Join(*of, ",")
	case *[]api.JobState:
		return strings.Join(names(*of), ",")
	case *[]api.Status:
		return strings.Join(names(*of), ",")
	case *[]api.Priority:
		return strings.Join(names(*of), ",")
	}
	return ""
}
