package spending

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/storage"
)

const (
	// MaxDays bounds the days of one report, and maxGroups its groups.
	MaxDays   = 100
	maxGroups = 10_000
	scanned   = 1000
)

// Query selects what a report counts: the days From to To, which count from 1970 in UTC, and of them
// what matches the names that are not "". With Tag, or with the tag among the groups, the sums are those
// of tags, which have no queue, function, provider and model. Namespaces reports whether the caller
// may see a namespace.
type Query struct {
	From, To int64
	agent.Group
	By         []string // of agent.Groups
	Namespaces func(namespace string) bool
}

// Report returns the sums that q selects, for each group and in all, ordered by the groups' names.
// Errors: CodeInvalid, CodeStoreUnavailable.
func Report(ctx context.Context, store *storage.Store, tenant string, q Query) (*agent.Report, error) {
	tags, err := q.check()
	if err != nil {
		return nil, err
	}
	groups := map[agent.Group]agent.Sums{}
	out := &agent.Report{From: dateOf(q.From), To: dateOf(q.To), Groups: []agent.GroupSums{}}
	for day := q.From; day <= q.To; day++ {
		err := eachRow(ctx, store, store.JobKeys(tenant).Spending(day), func(kind string, names []string, sums agent.Sums) error {
			g, ok := groupOf(kind, names)
			if !ok || (kind == rowTag) != tags || !q.Namespaces(g.Namespace) || !q.matches(g) {
				return nil
			}
			g.Day = dateOf(day)
			g = g.Only(q.By)
			groups[g] = groups[g].Plus(sums)
			out.Total = out.Total.Plus(sums)
			if len(groups) > maxGroups {
				return api.Errorf(api.CodeInvalid, "these days have more than %s groups: ask for fewer days, or group by less", api.CountText(maxGroups))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for g, sums := range groups {
		out.Groups = append(out.Groups, agent.GroupSums{Group: g, Sums: sums})
	}
	slices.SortFunc(out.Groups, func(a, b agent.GroupSums) int {
		return slices.CompareFunc(a.Names(), b.Names(), cmp.Compare[string])
	})
	return out, nil
}

// check checks q, and reports whether it asks for sums of tags.
func (q *Query) check() (tags bool, err error) {
	if q.To < q.From || q.To-q.From >= MaxDays {
		return false, api.Errorf(api.CodeInvalid, "the days must be in order, at most %d of them", MaxDays)
	}
	for _, by := range q.By {
		if !slices.Contains(agent.Groups, by) {
			return false, api.InvalidField("by", "must be of "+strings.Join(agent.Groups, ", "))
		}
	}
	tags = q.Tag != "" || slices.Contains(q.By, "tag")
	if q.TagValue != "" && q.Tag == "" {
		return false, api.InvalidField("tag_value", "must stand beside tag")
	}
	others := q.Queue + q.Function + q.Provider + q.Model
	for _, by := range q.By {
		if by == "queue" || by == "function" || by == "provider" || by == "model" {
			others += by
		}
	}
	if tags && others != "" {
		return false, api.InvalidField("tag", "cannot be combined with queue, function, provider or model: the sums of tags do not have them")
	}
	return tags, nil
}

// matches reports whether the names of g are those that q asks for.
func (q *Query) matches(g agent.Group) bool {
	for i, want := range q.Names() {
		if want != "" && g.Names()[i] != want {
			return false
		}
	}
	return true
}

// groupOf returns the names of a row.
func groupOf(kind string, names []string) (g agent.Group, ok bool) {
	switch {
	case kind == rowModel && len(names) == 5:
		return agent.Group{Namespace: names[0], Queue: names[1], Function: names[2], Provider: names[3], Model: names[4]}, true
	case kind == rowTag && len(names) == 3:
		return agent.Group{Namespace: names[0], Tag: names[1], TagValue: names[2]}, true
	}
	return g, false
}

// eachRow calls do with each row of a day, whose names are no longer escaped, until it fails.
func eachRow(ctx context.Context, store *storage.Store, key string, do func(kind string, names []string, sums agent.Sums) error) error {
	seen := map[string]bool{} // a scan may return a field twice
	for cursor := uint64(0); ; {
		fields, next, err := store.Client().HScan(ctx, key, cursor, "", scanned).Result()
		if err != nil {
			return storage.Failure(ctx, "read spending", err)
		}
		for i := 0; i+1 < len(fields); i += 2 {
			kind, rest, _ := strings.Cut(fields[i], "|")
			if kind != rowModel && kind != rowTag || seen[fields[i]] {
				continue
			}
			seen[fields[i]] = true
			names := strings.Split(rest, "|")
			for n := range names {
				if name, err := url.QueryUnescape(names[n]); err == nil {
					names[n] = name
				}
			}
			sums, err := parseSums(fields[i+1])
			if err == nil {
				err = do(kind, names, sums)
			}
			if err != nil {
				return err
			}
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// parseSums parses the value of a row.
func parseSums(text string) (agent.Sums, error) {
	var n [7]int64
	words := strings.Fields(text)
	if len(words) != len(n) {
		return agent.Sums{}, fmt.Errorf("spending: malformed sums %q", text)
	}
	for i, word := range words {
		var err error
		n[i], err = strconv.ParseInt(word, 10, 64)
		if err != nil {
			return agent.Sums{}, fmt.Errorf("spending: malformed sums %q: %w", text, err)
		}
	}
	return agent.FromNumbers(n), nil
}

// dateOf returns a day as a date.
func dateOf(day int64) string { return time.UnixMilli(day * dayMS).UTC().Format(time.DateOnly) }
