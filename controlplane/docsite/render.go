package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// repository is where links go that leave the folder of the pages.
const repository = "https://github.com/codesous/sous/blob/main/"

// A heading is an entry of a page's table of contents.
type heading struct {
	Level    int
	ID, Text string
}

// A page is one rendered file.
type page struct {
	file     string // below the folder docs
	path     string // of the page below /docs/
	title    string
	headings []heading // without the title
	body     template.HTML
	parts    []part
}

// A part is the text below one heading, for the search.
type part struct{ id, title, text string }

// markdown renders pages. Raw HTML is left out, and cells are aligned by attributes, as
// the policy of the site permits no inline styles.
var markdown = goldmark.New(
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough,
	),
	goldmark.WithRendererOptions(html.WithXHTML()),
)

// render returns the page of a file. titleOf returns the title of another page of the site,
// "" if the file is none.
func render(file string, source []byte, titleOf func(file string) string) (*page, error) {
	p := &page{file: file, path: pathOf(file)}
	root := markdown.Parser().Parse(text.NewReader(source))
	ids := map[string]int{}
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.addHeading(n, source, ids)
		case *ast.Link:
			nameLink(n, source, file, titleOf)
			n.Destination = []byte(siteLink(file, string(n.Destination), func(f string) bool { return titleOf(f) != "" }))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, fmt.Errorf("docsite: %s: %w", file, err)
	}
	p.collectText(root, source)
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, root); err != nil {
		return nil, fmt.Errorf("docsite: render %s: %w", file, err)
	}
	p.body = template.HTML(out.String()) //nolint:gosec // rendered from the pages of this binary
	return p, nil
}

// addHeading sets the id of a heading, as GitHub derives it from the text.
func (p *page) addHeading(n *ast.Heading, source []byte, ids map[string]int) {
	title := plainText(n, source)
	id := slug(title)
	if count := ids[id]; count > 0 {
		ids[id]++
		id += "-" + strconv.Itoa(count)
	} else {
		ids[id] = 1
	}
	n.SetAttributeString("id", []byte(id))
	if p.title == "" {
		p.title = title
		return
	}
	p.headings = append(p.headings, heading{Level: n.Level, ID: id, Text: title})
}

// slug returns the id of a heading: small letters, digits, "-" and "_", with "-" for each
// space.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// collectText fills the parts of the page.
func (p *page) collectText(root ast.Node, source []byte) {
	now := part{title: p.title}
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, is := n.(*ast.Heading); is {
			if now.text != "" {
				p.parts = append(p.parts, now)
			}
			id, _ := h.AttributeString("id")
			name, _ := id.([]byte)
			now = part{id: string(name), title: plainText(h, source)}
			continue
		}
		now.text = strings.TrimSpace(now.text + " " + plainText(n, source))
	}
	if now.text != "" || len(p.parts) == 0 {
		p.parts = append(p.parts, now)
	}
}

// plainText returns the text below a node, with single spaces.
func plainText(root ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(source))
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				b.Write(line.Value(source))
			}
		}
		return ast.WalkContinue, nil
	}) // the function above returns no error
	return strings.Join(strings.Fields(b.String()), " ")
}

// pathOf returns the path of a file's page: the file without .md, and the folder for a
// README.
func pathOf(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(file, ".md"), "README")
}

// nameLink replaces the text of a link that is the name of a page's file, which says little
// outside of the repository, by the title of that page.
func nameLink(n *ast.Link, source []byte, from string, titleOf func(string) string) {
	target, _, _ := strings.Cut(string(n.Destination), "#")
	if n.ChildCount() != 1 || plainText(n, source) != path.Base(target) {
		return
	}
	if title := titleOf(path.Join(path.Dir(from), target)); title != "" {
		n.RemoveChildren(n)
		n.AppendChild(n, ast.NewString([]byte(title)))
	}
}

// titleIn returns the title of a page's source.
func titleIn(source []byte) string {
	first, _, _ := bytes.Cut(source, []byte("\n"))
	return strings.TrimPrefix(string(first), "# ")
}

// siteLink translates a link of the repository. Links between pages lose ".md" and stay
// relative, so that they work behind any prefix; links to other files lead to the
// repository.
func siteLink(from, link string, known func(string) bool) string {
	target, err := url.Parse(link)
	if err != nil || target.IsAbs() || target.Host != "" || target.Path == "" {
		return link
	}
	file := path.Join("docs", path.Dir(from), target.Path)
	below, inside := strings.CutPrefix(file, "docs/")
	switch {
	case inside && known(below):
	case inside && known(below+"/README.md"):
		below += "/README.md"
	default:
		target.Path = file
		return repository + strings.TrimPrefix(target.String(), "./")
	}
	target.Path = strings.Repeat("../", strings.Count(from, "/")) + pathOf(below)
	if target.Path == "" {
		target.Path = "./"
	}
	return target.String()
}
