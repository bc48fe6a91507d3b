// Package spending has what the jobs of a tenant spend on models: the sums of each day, and the
// prices by which costs are computed.
package spending

import (
	"net/url"
	"strings"
	"time"

	"github.com/codesous/sous/api/agent"
)

// The sums of a day are one hash, which is kept for 400 days. Its fields are
//
//	r|ns|queue|function|provider|model   the sums of what jobs of the queue have spent on the model
//	t|ns|tag|value                       those of the jobs with the tag
//	n                                    how many of these there are
//	a|id                                 the last call of a replica, see usage_add.lua
//	w|id                                 a mark of a job during a change, see lua/include/ledger.lua
//
// Names are escaped as in a query, so that none has a "|". The values of r and t are the seven
// numbers of agent.Sums, separated by blanks. A day has at most agent.MaxRows of them; further
// names are counted in rows with agent.Other in the place of all names but the namespace.
const (
	rowModel = "r"
	rowTag   = "t"
	// KeepMS is how long the sums of a day are kept, in milliseconds.
	KeepMS = 400 * dayMS
	dayMS  = int64(24 * time.Hour / time.Millisecond)
)

// Day returns the day of a Unix time in milliseconds.
func Day(ms int64) int64 { return ms / dayMS }

// Row is a row of a day, with the one that takes its place where the day is full, and the numbers to add.
type Row struct {
	Field, Instead string
	Sums           agent.Sums
}

// Spender is the job that spends: its namespace, its queue, the function that it runs, and its tags.
type Spender struct {
	Namespace, Queue, Function string
	Tags                       map[string]string
}

// Rows returns the rows of entries that s has spent. Their order is not defined.
func Rows(s Spender, entries []agent.Usage) []Row {
	var all agent.Sums
	models := map[string]agent.Sums{}
	for i := range entries {
		u := &entries[i]
		sums := u.Sums()
		all = all.Plus(sums)
		field := fieldOf(rowModel, s.Namespace, s.Queue, s.Function, u.Provider, u.Model)
		models[field] = models[field].Plus(sums)
	}
	rows := make([]Row, 0, len(models)+len(s.Tags))
	for field, sums := range models {
		rows = append(rows, Row{field, fieldOf(rowModel, s.Namespace, agent.Other, agent.Other, agent.Other, agent.Other), sums})
	}
	if len(entries) == 0 {
		return rows
	}
	for tag, value := range s.Tags {
		rows = append(rows, Row{fieldOf(rowTag, s.Namespace, tag, value), fieldOf(rowTag, s.Namespace, agent.Other, agent.Other), all})
	}
	return rows
}

// fieldOf returns the field of a row.
func fieldOf(kind string, names ...string) string {
	for i, name := range names {
		names[i] = url.QueryEscape(name)
	}
	return kind + "|" + strings.Join(names, "|")
}
