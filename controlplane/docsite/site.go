// Package docsite is the site of the documentation: the Markdown of package docs as HTML,
// with a menu and a search. It needs no network and no server beside this one. All links
// are relative, so the site works behind a prefix of a proxy.
package docsite

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// view is the data of the layout.
type view struct {
	Title      string
	Root       string // the relative path of /docs/
	Menu       []menuView
	Contents   []heading
	Body       template.HTML
	Prev, Next *entry
}

type (
	menuView struct {
		Title   string
		Entries []entry
	}
	entry struct {
		Title, Path string
		Current     bool
	}
)

// build returns the documents of the site by their path below /docs/, and those of
// missingPages.
func build(pages fs.FS) (map[string]*document, []*document, error) {
	loaded, err := load(pages)
	if err != nil {
		return nil, nil, err
	}
	site := map[string]*document{}
	for i, p := range loaded {
		v := view{Title: p.title, Body: p.body, Contents: contentsOf(p)}
		if i > 0 {
			v.Prev = &entry{Title: loaded[i-1].title, Path: loaded[i-1].path}
		}
		if i+1 < len(loaded) {
			v.Next = &entry{Title: loaded[i+1].title, Path: loaded[i+1].path}
		}
		d, err := layOut(&v, p.path, loaded)
		if err != nil {
			return nil, nil, err
		}
		site[p.path] = d
	}
	index, err := searchIndex(loaded)
	if err != nil {
		return nil, nil, err
	}
	site["search.json"] = newDocument("application/json", index)
	for name, contentType := range map[string]string{"site.css": "text/css; charset=utf-8", "site.js": "text/javascript; charset=utf-8"} {
		raw, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, nil, fmt.Errorf("docsite: %w", err)
		}
		site["assets/"+name] = newDocument(contentType, raw)
	}
	missing, err := missingPages(loaded)
	return site, missing, err
}

// missingPages returns the pages for unknown paths, by the number of slashes in the path, on
// which their relative links depend.
func missingPages(loaded []*page) ([]*document, error) {
	const text = "<h1>Page not found</h1><p>The documentation has no page at this address. Use the menu or the search.</p>"
	const depths = 4
	var missing []*document
	for depth := range depths {
		d, err := layOut(&view{Title: "Page not found", Body: text}, strings.Repeat("/", depth), loaded)
		if err != nil {
			return nil, err
		}
		missing = append(missing, d)
	}
	return missing, nil
}

// load renders the pages in the order of the menu.
func load(pages fs.FS) ([]*page, error) {
	titleOf := func(file string) string {
		source, err := fs.ReadFile(pages, file)
		if err != nil || path.Ext(file) != ".md" {
			return ""
		}
		return titleIn(source)
	}
	var loaded []*page
	for _, s := range menu {
		for _, file := range s.files {
			if titleOf(file) == "" {
				continue
			}
			source, err := fs.ReadFile(pages, file)
			if err != nil {
				return nil, fmt.Errorf("docsite: %w", err)
			}
			p, err := render(file, source, titleOf)
			if err != nil {
				return nil, err
			}
			loaded = append(loaded, p)
		}
	}
	return loaded, nil
}

// contentsOf returns the headings of a page's table of contents.
func contentsOf(p *page) []heading {
	return slices.DeleteFunc(slices.Clone(p.headings), func(h heading) bool { return h.Level > 3 })
}

// layOut returns a page in the layout, as it is seen at a path below /docs/.
func layOut(v *view, at string, loaded []*page) (*document, error) {
	v.Root = strings.Repeat("../", strings.Count(at, "/"))
	if v.Root == "" {
		v.Root = "./"
	}
	for _, s := range menu {
		m := menuView{Title: s.title}
		for _, p := range loaded {
			if slices.Contains(s.files, p.file) {
				m.Entries = append(m.Entries, entry{Title: p.title, Path: p.path, Current: p.path == at})
			}
		}
		if s.title == "Reference" {
			m.Entries = append(m.Entries, entry{Title: "API operations", Path: "reference"})
		}
		if len(m.Entries) > 0 {
			v.Menu = append(v.Menu, m)
		}
	}
	var out bytes.Buffer
	if err := layout.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("docsite: page %q: %w", at, err)
	}
	return newDocument("text/html; charset=utf-8", out.Bytes()), nil
}

// A found is one entry of the search index.
type found struct {
	Path  string `json:"path"` // with the anchor
	Page  string `json:"page"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// searchIndex returns the texts of all pages, for site.js.
func searchIndex(loaded []*page) ([]byte, error) {
	var all []found
	for _, p := range loaded {
		for _, part := range p.parts {
			at := p.path
			if part.id != "" {
				at += "#" + part.id
			}
			all = append(all, found{Path: at, Page: p.title, Title: part.title, Text: part.text})
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("docsite: search index: %w", err)
	}
	return raw, nil
}
