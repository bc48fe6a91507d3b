package functions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/cmd/sous/internal/cli/bundler"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// plan is what a deployment would publish, and what would change.
type plan struct {
	name      string
	aliases   []string // at least one
	tar       []byte
	config    json.RawMessage
	schedules []api.NewSchedule
	triggers  manifest.Triggers
	bundled   *bundler.Bundle // nil if the folder is uploaded as it is
	changes   []change
	now       *running // nil if nothing runs
	files     map[string][]byte
	// unverified publishes modules that may fail when they are loaded.
	unverified bool
}

// The kinds of a change.
const (
	changeFile    = "file"
	changeSetting = "setting"
)

// change is a difference between the version that runs and the one of a plan.
type change struct {
	Kind string `json:"kind"` // file or setting
	Name string `json:"name"`
	// How is added, removed, changed or, of a setting that only the running version names,
	// kept.
	How  string `json:"how"`
	From string `json:"from,omitempty"` // of a short setting: its JSON
	To   string `json:"to,omitempty"`
}

// The values of change.How.
const (
	howAdded   = "added"
	howRemoved = "removed"
	howChanged = "changed"
	howKept    = "kept"
)

// plan reads and bundles the folder, and compares it with the version that runs.
func (a commands) plan(ctx context.Context, t *command.Target, d deployment) (*plan, error) {
	settings, err := d.source.settings()
	if err != nil {
		return nil, err
	}
	p := &plan{schedules: settings.Schedules, triggers: settings.Triggers, unverified: d.unverified}
	p.name, p.aliases, err = d.names(settings)
	if err != nil {
		return nil, err
	}
	d.source.outside = d.outside
	err = a.Working("bundling "+p.name, func() (err error) {
		p.files, p.bundled, err = d.source.upload(d.bundle, settings.Entry)
		return err
	})
	if err != nil {
		return nil, err
	}
	if p.bundled != nil {
		for _, warning := range p.bundled.Warnings {
			a.Note("warning: %s", warning)
		}
		a.Note("%s", bundleText(d.source.root, p.bundled))
	}
	p.tar, err = bundle.Pack(p.files)
	if err != nil {
		return nil, tooLarge(p.bundled, err)
	}
	fn, err := t.Function(p.name)
	if err != nil {
		return nil, err
	}
	p.now, err = runningVersion(ctx, fn, p.aliases[0])
	if err != nil {
		return nil, err
	}
	config := d.config
	if d.local {
		config, err = d.source.withLocalEnv(config, settings.Config)
		if err != nil {
			return nil, err
		}
	}
	var kept []string
	p.config, kept, err = configOf(p.now, settings, config)
	if err != nil {
		return nil, err
	}
	p.changes, err = p.compare(kept)
	return p, err
}

// names returns the function and the aliases of a deployment.
func (d deployment) names(settings manifest.Settings) (name string, aliases []string, err error) {
	name = cmp.Or(d.name, settings.Name)
	if name == "" {
		name, err = d.source.name()
		if err != nil {
			return "", nil, fmt.Errorf("give --name, or a name in %s: %w", manifest.SettingsFile, err)
		}
	}
	switch {
	case d.alias != "":
		aliases = []string{d.alias}
	case len(settings.Aliases) > 0:
		aliases = settings.Aliases
	default:
		aliases = []string{api.DefaultAlias}
	}
	err = api.ValidateName("function", name)
	for _, alias := range aliases {
		err = cmp.Or(err, api.ValidateAlias(alias))
	}
	return name, aliases, err
}

// compare returns the changes from the version that runs. Without one there are none. A folder
// that the server will refuse has no changes of settings: the server explains why.
func (p *plan) compare(kept []string) ([]change, error) {
	changes := []change{}
	if p.now == nil {
		return changes, nil
	}
	old, fresh, err := p.sources()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(union(old, fresh))) {
		before, had := old[name]
		after, has := fresh[name]
		if !bytes.Equal(before, after) || had != has {
			changes = append(changes, change{Kind: changeFile, Name: name, How: how(had, has)})
		}
	}
	resolved, err := manifest.Resolve(p.now.record, p.files, p.config)
	if err != nil {
		return changes, nil //nolint:nilerr // documented
	}
	from, err := manifest.Fields(p.now.version.Config)
	if err != nil {
		return nil, err
	}
	to, err := manifest.Fields(resolved)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(union(from, to))) {
		if c, differs := settingChange(name, from[name], to[name]); differs {
			changes = append(changes, c)
		} else if slices.Contains(kept, name) {
			changes = append(changes, change{Kind: changeSetting, Name: name, How: howKept})
		}
	}
	return changes, nil
}

// sources returns the files of the version that runs and those of the plan, as a user wrote
// them where both have their sources.
func (p *plan) sources() (old, fresh map[string][]byte, err error) {
	old, packed, err := sourcesOf(p.now.files)
	if err != nil {
		return nil, nil, err
	}
	fresh, both, err := sourcesOf(p.files)
	if err != nil || packed != both {
		return p.now.files, p.files, err
	}
	return old, fresh, nil
}

// settingChange compares a setting. Values of env are not shown: they may be confidential.
func settingChange(name string, from, to json.RawMessage) (c change, differs bool) {
	if string(from) == string(to) {
		return change{}, false
	}
	c = change{Kind: changeSetting, Name: name, How: how(len(from) > 0, len(to) > 0)}
	const short = 80
	if name != "env" && len(from) <= short && len(to) <= short {
		c.From, c.To = string(from), string(to)
	}
	if name == "env" {
		c.To = envChange(from, to)
	}
	return c, true
}

// envChange returns the names of the variables that differ, such as "+MODE ~LEVEL -OLD".
func envChange(from, to json.RawMessage) string {
	var before, after map[string]string
	_ = json.Unmarshal(from, &before) // both are our own JSON, or empty
	_ = json.Unmarshal(to, &after)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		old, had := before[name]
		value, has := after[name]
		switch {
		case !had:
			out = append(out, "+"+name)
		case !has:
			out = append(out, "-"+name)
		case old != value:
			out = append(out, "~"+name)
		}
	}
	return strings.Join(out, " ")
}

func union[V any](a, b map[string]V) map[string]V {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]V{}
	}
	maps.Copy(out, b)
	return out
}

func how(had, has bool) string {
	switch {
	case !had:
		return howAdded
	case !has:
		return howRemoved
	}
	return howChanged
}

// text returns a change as a line: "~ timeout_ms 3000 → 500".
func (c change) text() string {
	sign := map[string]string{howAdded: "+", howRemoved: "-", howChanged: "~", howKept: "="}[c.How]
	text := sign + " " + c.Name
	switch {
	case c.How == howKept:
		text += " is kept"
	case c.From != "" && c.To != "":
		text += " " + c.From + " → " + c.To
	case c.From != "" || c.To != "":
		text += " " + c.From + c.To
	}
	return text
}

// shownChanges returns the changes as lines, at most 30.
func shownChanges(changes []change) []string {
	const most = 30
	var lines []string
	for i, c := range changes {
		if i == most {
			return append(lines, fmt.Sprintf("  and %d more; sous diff shows all", len(changes)-most))
		}
		lines = append(lines, "  "+c.text())
	}
	return lines
}
