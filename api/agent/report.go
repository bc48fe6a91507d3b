package agent

import "slices"

// Groups are the names by which a report may be grouped, in the order of its groups.
var Groups = []string{"day", "namespace", "queue", "function", "tag", "provider", "model"}

// Group has the names that a group of a report has in common, "" for those by which it is not grouped.
type Group struct {
	Day       string `json:"day,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Queue     string `json:"queue,omitempty"`
	Function  string `json:"function,omitempty"`
	Tag       string `json:"tag,omitempty"`
	TagValue  string `json:"tag_value,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
}

// Names returns the names of g, in the order of Columns.
func (g Group) Names() []string {
	return []string{g.Day, g.Namespace, g.Queue, g.Function, g.Tag, g.TagValue, g.Provider, g.Model}
}

// Columns are the names of the fields of groups, as of a table.
func Columns() []string {
	return []string{"day", "namespace", "queue", "function", "tag", "tag_value", "provider", "model"}
}

// Only returns g with the names of by, which are of Groups.
func (g Group) Only(by []string) (out Group) {
	for name, copied := range map[string]func(){
		"day":       func() { out.Day = g.Day },
		"namespace": func() { out.Namespace = g.Namespace },
		"queue":     func() { out.Queue = g.Queue },
		"function":  func() { out.Function = g.Function },
		"tag":       func() { out.Tag, out.TagValue = g.Tag, g.TagValue },
		"provider":  func() { out.Provider = g.Provider },
		"model":     func() { out.Model = g.Model },
	} {
		if slices.Contains(by, name) {
			copied()
		}
	}
	return out
}

// GroupSums has the sums of a group.
type GroupSums struct {
	Group
	Sums
}

// Report has what the jobs of a tenant have spent on models from a day to another, both included and in
// UTC. A job with several tags counts in several groups of tags, and in their Total.
type Report struct {
	From   string      `json:"from"`
	To     string      `json:"to"`
	Groups []GroupSums `json:"groups"`
	Total  Sums        `json:"total"`
}
