package command

import (
	"context"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/search"
)

// ParameterFlags are flags that stand for parameters of a search.
type ParameterFlags struct{ given map[string]*string } // by parameter

// RegisterParameters adds a flag for each parameter to a command, but those for which without returns
// true. A boolean one becomes a flag that the command reads itself.
func RegisterParameters(cmd *cobra.Command, parameters []search.Parameter, without func(name string) bool) ParameterFlags {
	flags, f := cmd.Flags(), ParameterFlags{map[string]*string{}}
	for _, p := range parameters {
		name := strings.ReplaceAll(p.Name, "_", "-")
		switch {
		case without(p.Name):
		case p.Boolean:
			flags.Bool(name, false, p.Doc)
		default:
			doc := p.Doc
			if p.Enum != nil {
				doc += ": " + strings.Join(p.Enum, ", ")
			}
			f.given[p.Name] = flags.String(name, "", doc)
		}
	}
	return f
}

// Values returns the parameters that the flags set.
func (f ParameterFlags) Values() url.Values {
	values := url.Values{}
	for name, value := range f.given {
		if *value != "" {
			values.Set(name, *value)
		}
	}
	return values
}

// CountText returns the count of a search as a sentence. noun names one record.
func CountText(c search.MatchCount, noun string) string {
	counted := Plural(int(c.Value), noun)
	switch {
	case !c.Exact:
		return "at least " + counted + " match"
	case c.Value == 1:
		return counted + " matches"
	}
	return counted + " match"
}

// PrintSearch prints the records of a search as PrintList does, from the pages that list reads, and
// notes what the first page says of the whole. noun names one record.
func PrintSearch[T any](ctx context.Context, a *App, list func(context.Context, client.PageOptions) (search.Results[T], error), limit uint,
	noun string, header []string, row func(T) []string,
) error {
	var first *search.Results[T]
	pages := func(ctx context.Context, o client.PageOptions) (api.Page[T], error) {
		page, err := list(ctx, o)
		if first == nil {
			first = &page
		}
		return api.Page[T]{Items: page.Items, NextCursor: page.NextCursor}, err
	}
	items, more, err := Collect(client.All(ctx, pages, client.PageOptions{}), limit)
	if err != nil {
		return err
	}
	a.NoteMore(more)
	if first.Count != nil {
		a.Note("%s", CountText(*first.Count, noun))
	}
	if first.Mirror != nil && first.Mirror.Rebuilding {
		a.Note("the mirror is being rebuilt: %ss may be missing", noun)
	}
	return PrintList(a, items, header, row)
}
