package search

import (
	"math"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage/mirror"
)

// fragment is a part of a statement with its parameters.
type fragment struct {
	sql  string
	args []any
}

// source leads to all rows of a selection, and others. Its parts together are in no order, and have
// no row twice. Each is the FROM and the WHERE of a table with the column that holds the row.
type source struct {
	parts  []fragment
	column string // of the row
	// unordered sources are not in the order of rows, so that they lead only if they have few.
	unordered bool
}

// sortKey is an order of a table: the expression of its key, with j for the table, and the source
// that is in its order. Rows without the key do not satisfy has.
type sortKey struct {
	expr, has string
	index     string
}

// table describes a table of the mirror.
type table struct {
	name, words string
	state       string   // the column of the state
	columns     []string // of words
	sorts       map[string]sortKey
}

// selection selects rows of a table.
type selection struct {
	*table
	tenant string
	where  []fragment // all must hold; j is the table
	// sources are indexes of equal values; the first of those with the fewest rows is used.
	sources []source
	// unordered are further sources, of ranges.
	unordered []source
	// inNamespaces adds the source for which the namespaces of the tenant must be known, if set.
	inNamespaces func(namespaces []string)
	// match is the expression of a full-text query, "" for none.
	match string
	// low and high are the bounds of the rows.
	low, high int64
	// ranges are those of the sort keys that are times.
	ranges map[string]search.Range
}

// newSelection returns the selection of all rows of a tenant.
func newSelection(t *table, tenant string) *selection {
	s := &selection{table: t, tenant: tenant, low: 0, high: math.MaxInt64, ranges: map[string]search.Range{}}
	s.and("j.tenant = ?", tenant)
	return s
}

// and adds a condition.
func (s *selection) and(sql string, args ...any) { s.where = append(s.where, fragment{sql, args}) }

// equal adds the condition that a column has the value, unless that is "". index has the tenant and
// the column, or is "" for none.
func (s *selection) equal(column, value, index string) {
	if value == "" {
		return
	}
	s.and("j."+column+" = ?", value)
	if index != "" {
		s.sources = append(s.sources, s.indexed(index, fragment{column + " = ?", []any{value}}))
	}
}

// indexed returns the source of an index of the tenant and further columns: one part for each
// condition of these.
func (s *selection) indexed(index string, conditions ...fragment) source {
	out := source{column: "row"}
	for _, c := range conditions {
		where := " WHERE tenant = ?"
		if c.sql != "" {
			where += " AND " + c.sql
		}
		out.parts = append(out.parts, fragment{s.name + " INDEXED BY " + index + where, append([]any{s.tenant}, c.args...)})
	}
	return out
}

// among adds the condition that a column has one of the values, unless there are none.
func among[T any](s *selection, column string, values []T) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	s.and("j."+column+" IN (?"+strings.Repeat(",?", len(values)-1)+")", args...)
}

// maxParts bounds the parts of a source: SQLite merges them.
const maxParts = 36

// divided adds the source of an index of the tenant and two further columns, with one part for each
// pair of values. It adds none if there are no values or too many.
func (s *selection) divided(index, condition string, first, second []string) {
	if n := len(first) * len(second); n == 0 || n > maxParts {
		return
	}
	var parts []fragment
	for _, a := range first {
		for _, b := range second {
			parts = append(parts, fragment{condition, []any{a, b}})
		}
	}
	s.sources = append(s.sources, s.indexed(index, parts...))
}

// addStates adds the sources by name (queue or function), namespace and state, and that of all rows.
// all are the states that exist: an index with a state in the middle is in the order of rows only
// within one state.
func (s *selection) addStates(name string, names []string, namespace string, states, all []string) {
	restricted := len(states) > 0
	if !restricted {
		states = all
	}
	condition := " = ? AND " + s.state + " = ?"
	s.divided(s.name+"_"+name, name+condition, names, states)
	switch byNamespace := s.name + "_namespace"; {
	case namespace != "":
		s.divided(byNamespace, "namespace"+condition, []string{namespace}, states)
	case restricted:
		s.inNamespaces = func(namespaces []string) { s.divided(byNamespace, "namespace"+condition, namespaces, states) }
	}
	s.sources = append(s.sources, s.indexed(s.name+"_tenant", fragment{}))
}

// distinct returns the values as texts, each once.
func distinct[T ~string](values []T) []string {
	var out []string
	for _, v := range values {
		if !slices.Contains(out, string(v)) {
			out = append(out, string(v))
		}
	}
	return out
}

// within adds the condition that a column is in a range. key is the sort key of the column.
func (s *selection) within(column, key string, r search.Range) {
	if r.Empty() {
		return
	}
	s.ranges[key] = r
	// SQLite seeks by the first bound of the column: that of the partial index comes last.
	from := s.indexed(s.sorts[key].index, fragment{})
	from.unordered = true
	bound := func(operator string, ms int64) {
		if ms <= 0 {
			return
		}
		s.and("j."+column+operator, ms)
		from.parts[0].sql += " AND " + column + operator
		from.parts[0].args = append(from.parts[0].args, ms)
	}
	s.and("j." + column + " > 0")
	bound(" >= ?", r.FromMS)
	bound(" < ?", r.ToMS)
	from.parts[0].sql += " AND " + column + " > 0"
	if s.sorts[key].index != "" {
		s.unordered = append(s.unordered, from)
	}
}

// created adds the condition on the time of creation, which is a range of rows.
func (s *selection) created(column string, r search.Range) {
	if r.FromMS > 0 {
		s.and("j."+column+" >= ?", r.FromMS)
		s.low = mirror.FirstRow(min(r.FromMS, maxMS))
	}
	if r.ToMS > 0 {
		s.and("j."+column+" < ?", r.ToMS)
		// Rows of a full millisecond continue in the next one.
		s.high = mirror.FirstRow(min(r.ToMS, maxMS) + 1)
	}
}

// maxMS is the latest time that a row can hold.
const maxMS = math.MaxInt64>>20 - 1

// contains adds the condition that a column has the text, in either case of ASCII letters.
func (s *selection) contains(column, text string) {
	if text == "" {
		return
	}
	escaped := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
	s.and("j."+column+` LIKE ? ESCAPE '\'`, "%"+escaped+"%")
}

// matching adds a full-text query. Errors: CodeSearchSyntax.
func (s *selection) matching(words string) error {
	if words == "" {
		return nil
	}
	expression, err := parseWords(words, s.columns)
	if err != nil {
		return err
	}
	s.match = expression
	return nil
}

// inTenant has the full-text index skip the rows of other tenants. Where most rows are the tenant's, it
// is cheaper to skip the others later.
func (s *selection) inTenant() {
	s.match = `tenant : "` + mirror.TenantWord(s.tenant) + `" AND (` + s.match + `)`
}

// wordSource returns the source of the rows that match the full-text query.
func (s *selection) wordSource() source {
	return source{parts: []fragment{{s.table.words + " WHERE " + s.table.words + " MATCH ?", []any{s.match}}}, column: "rowid"}
}

// probe returns the condition that a row matches the full-text query.
func (s *selection) probe() fragment {
	return fragment{"EXISTS (SELECT 1 FROM " + s.table.words + " WHERE " + s.table.words + " MATCH ? AND rowid = j.row)", []any{s.match}}
}

// conditions returns the WHERE of the selection. The probe comes last, since it costs most.
func (s *selection) conditions(probe bool) fragment {
	var out fragment
	all := s.where
	if probe {
		all = append(all[:len(all):len(all)], s.probe())
	}
	for i, c := range all {
		if i > 0 {
			out.sql += " AND "
		}
		out.sql += c.sql
		out.args = append(out.args, c.args...)
	}
	return out
}

// validateTexts refuses filters that are too long or too many. Errors: CodeInvalid.
func validateTexts(texts map[string][]string) error {
	for path, values := range texts {
		if len(values) > search.MaxTexts {
			return api.InvalidField(path, "must have at most 50 values")
		}
		for _, v := range values {
			if len(v) > search.MaxTextBytes {
				return api.InvalidField(path, "must have at most 512 bytes")
			}
		}
	}
	return nil
}
