package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

// The bounds of the work of a page. Variables of the tests make them small.
type bounds struct {
	few        int // rows of a source that is read as a whole and sorted
	fewProbed  int // the same if each row must be looked up among the words
	examined   int // rows of a page
	probed     int // rows of a page that are looked up among the words
	ranked     int // newest matches that are ranked
	counted    int // rows that are examined for a count
	maxCount   int // of a count
	pageBytes  int
	seriesRows int
}

var defaultBounds = bounds{
	few: 2_000, fewProbed: 500, examined: 10_000, probed: 1_000, ranked: 2_000,
	counted: 100_000, maxCount: search.MaxCount, pageBytes: search.MaxPageBytes, seriesRows: search.MaxSeriesRows,
}

// pageRequest is the page that is asked for.
type pageRequest struct {
	search.Order
	after *position
	limit int
}

// found is a row of a page.
type found struct {
	position
	doc []byte
}

// planner reads pages of a selection in a transaction.
type planner struct {
	*selection
	bounds

	ctx        context.Context //nolint:containedctx // of one search
	tx         *sql.Tx
	restricted bool // restrictWords was called
}

// ordered returns the rows of a source within [low, high], newest first unless ascending, in the
// columns row and k.
func (p *planner) ordered(src source, low, high int64, ascending bool, limit int) fragment {
	var out fragment
	for i, part := range src.parts {
		if i > 0 {
			out.sql += " UNION ALL "
		}
		out.sql += "SELECT " + src.column + " AS row, " + src.column + " AS k FROM " + part.sql + " AND " + src.column + " >= ? AND " + src.column + " <= ?"
		out.args = append(append(out.args, part.args...), low, high)
	}
	if !src.unordered {
		order := src.column
		if len(src.parts) > 1 {
			order = "row"
		}
		out.sql += " ORDER BY " + order + direction(ascending)
	}
	out.sql += " LIMIT ?"
	out.args = append(out.args, limit)
	return out
}

func direction(ascending bool) string {
	if ascending {
		return " ASC"
	}
	return " DESC"
}

// size returns the number of rows of a source within the selection's bounds, at most limit.
func (p *planner) size(src source, limit int) (n int, err error) {
	rows := p.ordered(src, p.low, p.high, false, limit)
	err = p.tx.QueryRowContext(p.ctx, "SELECT count(*) FROM ("+rows.sql+")", rows.args...).Scan(&n)
	return n, err
}

// choice is the source that leads, whether it has fewer rows than the bound, and whether each row
// must be looked up among the words.
type choice struct {
	source
	few, probe bool
}

// choose returns the source with the fewest rows. If all have many, that of the words is chosen, or
// else the first.
func (p *planner) choose() (choice, error) {
	few := p.few
	if p.match != "" {
		few = min(few, p.fewProbed)
	}
	if p.inNamespaces != nil {
		namespaces, err := p.namespaces()
		if err != nil {
			return choice{}, err
		}
		p.inNamespaces(namespaces)
		p.inNamespaces = nil
	}
	if err := p.restrictWords(); err != nil {
		return choice{}, err
	}
	best := choice{source: p.sources[0], probe: p.match != ""}
	least := few
	for _, src := range slices.Concat(p.sources, p.unordered) {
		n, err := p.size(src, least)
		if err != nil {
			return best, err
		}
		if n < least {
			least, best.source, best.few = n, src, true
		}
		if least == 0 {
			return best, nil
		}
	}
	if p.match == "" {
		return best, nil
	}
	limit := p.few
	if best.few {
		limit = least
	}
	n, err := p.size(p.wordSource(), limit)
	if err == nil && (n < limit || !best.few) {
		best = choice{source: p.wordSource(), few: n < limit}
	}
	return best, err
}

// sampled is the number of the newest rows that are a sample of the tenants.
const sampled = 100

// restrictWords restricts the full-text query to the tenant if less than half of the newest rows are
// the tenant's.
func (p *planner) restrictWords() error {
	if p.match == "" || p.restricted {
		return nil
	}
	p.restricted = true
	var all, ours int
	err := p.tx.QueryRowContext(p.ctx, "SELECT count(*), coalesce(sum(tenant = ?), 0) FROM (SELECT tenant FROM "+p.name+" ORDER BY row DESC LIMIT ?)", p.tenant, sampled).Scan(&all, &ours)
	if err == nil && ours*2 < all {
		p.inTenant()
	}
	return err
}

// namespaces returns the namespaces in which the tenant has jobs, at most maxParts. It seeks each one
// in the index.
func (p *planner) namespaces() (names []string, err error) {
	least := "SELECT min(namespace) FROM " + p.name + " INDEXED BY " + p.name + "_namespace WHERE tenant = ?"
	rows, err := p.tx.QueryContext(p.ctx, "WITH RECURSIVE n (v) AS ("+least+" UNION ALL SELECT ("+least+" AND namespace > v) FROM n WHERE v IS NOT NULL"+
		") SELECT v FROM n WHERE v IS NOT NULL LIMIT ?", p.tenant, p.tenant, maxParts+1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// page reads a page.
func (p *planner) page(r pageRequest) ([]found, string, error) {
	if r.Sort == search.SortRank {
		return p.rankedPage(r)
	}
	lead, err := p.choose()
	if err != nil {
		return nil, "", err
	}
	switch {
	case (r.Sort == "" || r.Sort == search.SortCreated) && !lead.unordered:
		return p.createdPage(r, lead)
	case lead.few:
		return p.sortedPage(r, lead)
	}
	return p.indexPage(r)
}

// createdPage reads a page in the order of creation, which is that of the rows of every source.
func (p *planner) createdPage(r pageRequest, lead choice) ([]found, string, error) {
	low, high := p.low, p.high
	if r.after != nil && r.Ascending {
		low = max(low, r.after.row+1)
	} else if r.after != nil {
		high = min(high, r.after.row-1)
	}
	budget := p.examined
	if lead.probe {
		budget = p.probed
	}
	return p.bounded(r.limit, budget, lead.probe, func(limit int) fragment {
		return p.ordered(lead.source, low, high, r.Ascending, limit)
	})
}

// indexPage reads a page along the index of its order.
func (p *planner) indexPage(r pageRequest) ([]found, string, error) {
	if p.match != "" {
		return p.chunkPage(r.limit, p.along(r))
	}
	return p.bounded(r.limit, p.examined, false, p.along(r))
}

// along returns the statement of the first rows along the index of an order, behind the position of r.
func (p *planner) along(r pageRequest) func(limit int) fragment {
	key := p.sorts[r.Sort]
	expr := strings.ReplaceAll(key.expr, "j.", "")
	rows := fragment{"SELECT row, " + expr + " AS k FROM " + p.name + " INDEXED BY " + key.index + " WHERE tenant = ?", []any{p.tenant}}
	bound := func(sql string, args ...any) {
		rows.sql += " AND " + sql
		rows.args = append(rows.args, args...)
	}
	if within := p.ranges[r.Sort]; within.FromMS > 0 {
		bound(expr+" >= ?", within.FromMS)
	}
	if within := p.ranges[r.Sort]; within.ToMS > 0 {
		bound(expr+" < ?", within.ToMS)
	}
	if r.after != nil {
		after := p.behind(r, expr, "row")
		bound(after.sql, after.args...)
	}
	bound(strings.ReplaceAll(key.has, "j.", "")) // last, since SQLite seeks by the first bound
	rows.sql += " ORDER BY " + expr + direction(r.Ascending) + ", row" + direction(r.Ascending) + " LIMIT ?"
	return func(limit int) fragment {
		return fragment{rows.sql, append(rows.args[:len(rows.args):len(rows.args)], limit)}
	}
}

// behind returns the condition that a row is behind the position of r.
func (p *planner) behind(r pageRequest, key, row string) fragment {
	operator := "<"
	if r.Ascending {
		operator = ">"
	}
	// The first part lets SQLite seek in the index.
	return fragment{
		key + " " + operator + "= ? AND (" + key + " " + operator + " ? OR " + row + " " + operator + " ?)",
		[]any{r.after.key, r.after.key, r.after.row},
	}
}

// bounded returns the rows of a source that satisfy the selection, at most limit. It examines at
// most budget rows of the source: rows returns the first ones in order. SQLite reads rows as a
// coroutine, so the order stays and it ends where the page is full.
func (p *planner) bounded(limit, budget int, probe bool, rows func(limit int) fragment) ([]found, string, error) {
	from, where := rows(budget), p.conditions(probe)
	items, next, err := p.read(limit, fragment{
		"SELECT d.k, d.row, j.doc FROM (" + from.sql + ") d CROSS JOIN " + p.name + " j NOT INDEXED ON j.row = d.row WHERE " + where.sql + " LIMIT ?",
		append(append(from.args, where.args...), limit+1),
	})
	if err != nil || next != "" {
		return items, next, err
	}
	var last position
	err = p.tx.QueryRowContext(p.ctx, "SELECT k, row FROM ("+from.sql+") LIMIT 1 OFFSET ?", append(rows(budget).args, budget-1)...).Scan(&last.key, &last.row)
	if errors.Is(err, sql.ErrNoRows) {
		return items, "", nil
	}
	return items, last.String(), err
}

// spread is how many matches are read for a row of a chunk before the chunk is divided.
const spread = 4

// chunkPage is bounded for rows that must match the full-text query. It reads the matches between the
// oldest and the newest row of a chunk of rows at once: to look up a single row is as expensive as to
// read hundreds in order. The times of jobs follow their creation, so there are few others between.
func (p *planner) chunkPage(limit int, rows func(limit int) fragment) ([]found, string, error) {
	from := rows(p.probed)
	chunk, err := p.positions(from.sql, from.args...)
	if err != nil || len(chunk) == 0 {
		return nil, "", err
	}
	end, whole := "", len(chunk) < p.probed
	matched := map[int64]bool{}
	for {
		low, high := chunk[0].row, chunk[0].row
		for _, c := range chunk {
			low, high = min(low, c.row), max(high, c.row)
		}
		matches := p.ordered(p.wordSource(), low, high, false, spread*p.probed)
		found, err := p.positions(matches.sql, matches.args...)
		if err != nil {
			return nil, "", err
		}
		if len(found) == spread*p.probed && len(chunk) > 1 {
			chunk, whole = chunk[:(len(chunk)+3)/4], false
			continue
		}
		for _, f := range found {
			matched[f.row] = true
		}
		break
	}
	if !whole {
		end = chunk[len(chunk)-1].String()
	}
	return p.pick(limit, chunk, matched, end)
}

// pick returns the rows of chunk that are matched and satisfy the selection, at most limit. end is
// the position behind the chunk.
func (p *planner) pick(limit int, chunk []position, matched map[int64]bool, end string) ([]found, string, error) {
	list := []byte{'['}
	for _, c := range chunk {
		if matched[c.row] {
			list = append(fmt.Appendf(list, "[%d,%d]", c.key, c.row), ',')
		}
	}
	if len(list) == 1 {
		return nil, end, nil
	}
	list[len(list)-1] = ']'
	where := p.conditions(false)
	items, next, err := p.read(limit, fragment{
		"SELECT json_extract(e.value, '$[0]'), j.row, j.doc FROM json_each(?) e CROSS JOIN " + p.name + " j NOT INDEXED ON j.row = json_extract(e.value, '$[1]') WHERE " + where.sql + " LIMIT ?",
		append(append([]any{string(list)}, where.args...), limit+1),
	})
	if err == nil && next == "" {
		next = end
	}
	return items, next, err
}

// positions reads the columns k and row of a statement.
func (p *planner) positions(sql string, args ...any) (out []position, err error) {
	rows, err := p.tx.QueryContext(p.ctx, "SELECT k, row FROM ("+sql+")", args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var at position
		if err := rows.Scan(&at.key, &at.row); err != nil {
			return nil, err
		}
		out = append(out, at)
	}
	return out, rows.Err()
}

// sortedPage reads a page of a selection that has few rows.
func (p *planner) sortedPage(r pageRequest, lead choice) ([]found, string, error) {
	key := p.sorts[r.Sort]
	if key.expr == "" {
		key = sortKey{expr: "j.row", has: "true"}
	}
	from, where := p.ordered(lead.source, p.low, p.high, false, p.few), p.conditions(lead.probe)
	inner := fragment{
		"SELECT j.row AS row, " + key.expr + " AS k FROM (" + from.sql + ") d CROSS JOIN " + p.name + " j NOT INDEXED ON j.row = d.row WHERE " + where.sql + " AND " + key.has,
		append(from.args, where.args...),
	}
	if r.after != nil {
		after := p.behind(r, key.expr, "j.row")
		inner.sql += " AND " + after.sql
		inner.args = append(inner.args, after.args...)
	}
	return p.topPage(r, inner)
}

// rankedPage reads a page of the newest matches, best first. The rank is a whole number, so that a
// position holds it exactly.
func (p *planner) rankedPage(r pageRequest) ([]found, string, error) {
	if p.match == "" {
		return nil, "", api.InvalidField("sort", "rank needs q")
	}
	if err := p.restrictWords(); err != nil {
		return nil, "", err
	}
	words, where := p.table.words, p.conditions(false)
	from := p.ordered(p.wordSource(), p.low, p.high, false, p.ranked)
	var oldest sql.NullInt64
	if err := p.tx.QueryRowContext(p.ctx, "SELECT min(row) FROM ("+from.sql+")", from.args...).Scan(&oldest); err != nil {
		return nil, "", err
	}
	if !oldest.Valid {
		return nil, "", nil
	}
	inner := fragment{
		"SELECT j.row AS row, d.k AS k FROM (SELECT rowid AS row, CAST(bm25(" + words + ") * -1000000 AS INTEGER) AS k FROM " + words + " WHERE " + words +
			" MATCH ? AND rowid >= ? AND rowid <= ?) d CROSS JOIN " + p.name + " j NOT INDEXED ON j.row = d.row WHERE " + where.sql,
		append([]any{p.match, oldest.Int64, p.high}, where.args...),
	}
	if r.after != nil {
		after := p.behind(r, "d.k", "d.row")
		inner.sql += " AND " + after.sql
		inner.args = append(inner.args, after.args...)
	}
	return p.topPage(r, inner)
}

// topPage sorts the rows of inner, which has the columns row and k, and reads the first ones.
func (p *planner) topPage(r pageRequest, inner fragment) ([]found, string, error) {
	order := " ORDER BY k" + direction(r.Ascending) + ", row" + direction(r.Ascending) + " LIMIT ?"
	return p.read(r.limit, fragment{
		"SELECT d.k, d.row, j.doc FROM (SELECT row, k FROM (" + inner.sql + ")" + order + ") d CROSS JOIN " + p.name + " j NOT INDEXED ON j.row = d.row",
		append(inner.args, r.limit+1),
	})
}

// read reads at most limit rows of a statement that has limit+1, and the position behind the last one
// if others follow. A page ends after pageBytes of records.
func (p *planner) read(limit int, statement fragment) (items []found, next string, err error) {
	rows, err := p.tx.QueryContext(p.ctx, statement.sql, statement.args...)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = rows.Close() }()
	for bytes := 0; rows.Next(); {
		if len(items) == limit || bytes > p.pageBytes {
			return items, items[len(items)-1].String(), nil
		}
		var f found
		if err := rows.Scan(&f.key, &f.row, &f.doc); err != nil {
			return nil, "", err
		}
		bytes += len(f.doc)
		items = append(items, f)
	}
	return items, "", rows.Err()
}

// count counts the rows of the selection.
func (p *planner) count(key sortKey) (*search.MatchCount, error) {
	lead, err := p.choose()
	if err != nil {
		return nil, err
	}
	budget := p.counted
	if lead.probe {
		budget = p.probed
	}
	from, where := p.ordered(lead.source, p.low, p.high, false, budget), p.conditions(lead.probe)
	if key.has != "" {
		where.sql += " AND " + key.has
	}
	out := search.MatchCount{}
	err = p.tx.QueryRowContext(p.ctx, "SELECT count(*) FROM (SELECT 1 FROM ("+from.sql+") d CROSS JOIN "+p.name+" j NOT INDEXED ON j.row = d.row WHERE "+where.sql+" LIMIT ?)",
		append(append(from.args, where.args...), p.maxCount+1)...).Scan(&out.Value)
	if err != nil {
		return nil, err
	}
	if out.Value > int64(p.maxCount) {
		return &search.MatchCount{Value: int64(p.maxCount)}, nil
	}
	n, err := p.size(lead.source, budget)
	out.Exact = n < budget
	return &out, err
}
