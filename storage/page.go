package storage

import "github.com/codesous/sous/api"

// ScanBudget limits the entries that one page reads where a filter or deleted records
// leave some out. Such a page may be short and still have a next cursor.
const ScanBudget = 2000

// PageLimit returns limit within the bounds of a page; zero or less is
// api.DefaultPageLimit.
func PageLimit(limit int) int {
	if limit <= 0 {
		return api.DefaultPageLimit
	}
	return min(limit, api.MaxPageLimit)
}

// FirstPage returns the first limit of names, which a list has read in order, and the last
// of them as next, the position after which the following page begins. next is "" where
// names has no more than limit.
func FirstPage(names []string, limit int) (page []string, next string) {
	if len(names) <= limit {
		return names, ""
	}
	return names[:limit], names[limit-1]
}
