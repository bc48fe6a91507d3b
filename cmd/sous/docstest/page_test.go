package docstest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// root is the folder of the repository.
const root = "../../.."

// A block is a code block of a page.
type block struct {
	line     int // of its first line of code, from 1
	language string
	title    string // the file that the block is written to, or ""
	exit     int    // the exit code that a sh block must have
	skip     string // why a sh block does not run, or ""
	needs    string // a program without which the page cannot run, or ""
	inBack   bool   // runs until the page ends
	code     string

	expected *block // the output of a sh block, or nil
	isOutput bool
}

// A page is a file with its code blocks in order.
type page struct {
	name   string // relative to the root of the repository
	blocks []*block
}

// pages returns all pages of the documentation.
func pages(t *testing.T) []page {
	t.Helper()
	files, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatalf("Glob: %v", err)
	}
	below, err := filepath.Glob(root + "/docs/*/*.md")
	if err != nil {
		t.Fatalf("Glob: %v", err)
	}
	var all []page
	for _, file := range slices.Concat([]string{root + "/README.md"}, files, below) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("ReadFile: %v", err)
		}
		name := strings.TrimPrefix(file, root+"/")
		blocks, err := parse(source)
		if err != nil {
			t.Errorf("parse(%s) = line %v, want only blocks that can be checked", name, err)
		}
		all = append(all, page{name: name, blocks: blocks})
	}
	if len(all) < 20 {
		t.Fatalf("found %d pages, want at least 20", len(all))
	}
	return all
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table))

// parse returns the code blocks of a page. The error names the line of a block that is
// none of the forms of the package comment.
func parse(source []byte) ([]*block, error) {
	var blocks []*block
	tree := markdown.Parser().Parse(text.NewReader(source))
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeBlock:
			return ast.WalkStop, fmt.Errorf("%d: the code is indented, want a fence with a language", lineOf(n, source))
		case *ast.HTMLBlock:
			raw := string(n.Lines().Value(source))
			if code, is := strings.CutPrefix(raw, "<!-- sh\n"); is {
				code, _, _ = strings.Cut(code, "-->")
				blocks = append(blocks, &block{line: lineOf(n, source) + 1, language: "sh", code: code})
			}
		case *ast.FencedCodeBlock:
			b := &block{line: lineOf(n, source), code: string(n.Lines().Value(source))}
			if n.Info == nil {
				return ast.WalkStop, fmt.Errorf("%d: the fence has no language; that of output and diagrams is text", b.line)
			}
			if err := b.configure(string(n.Info.Value(source))); err != nil {
				return ast.WalkStop, fmt.Errorf("%d: %w", b.line, err)
			}
			if b.title != "" && !named(n, source, b.title) {
				return ast.WalkStop, fmt.Errorf("%d: the paragraph before does not name `%s`, which readers do not see at the fence", b.line, b.title)
			}
			if before, is := n.PreviousSibling().(*ast.FencedCodeBlock); is && b.language == "text" && b.title == "" && string(before.Language(source)) == "sh" {
				b.isOutput, blocks[len(blocks)-1].expected = true, b
			}
			blocks = append(blocks, b)
		}
		return ast.WalkContinue, nil
	})
	return blocks, err
}

// named reports whether the paragraph before a block has the name of its file.
func named(n ast.Node, source []byte, title string) bool {
	before := n.PreviousSibling()
	return before != nil && before.Kind() == ast.KindParagraph && strings.Contains(string(before.Lines().Value(source)), "`"+title+"`")
}

// lineOf returns the line of the first line of code.
func lineOf(n ast.Node, source []byte) int {
	if n.Lines().Len() == 0 {
		return 0
	}
	return 1 + bytes.Count(source[:n.Lines().At(0).Start], []byte("\n"))
}

// configure reads the words behind the fence.
func (b *block) configure(info string) error {
	words := strings.Fields(info)
	b.language = words[0]
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if name != "title" && b.language != "sh" {
			return fmt.Errorf("%s: only sh blocks have a mark other than title", word)
		}
		switch {
		case name == "title" && filepath.IsLocal(value):
			b.title = value
		case name == "exit" && value != "":
			if _, err := fmt.Sscan(value, &b.exit); err != nil {
				return fmt.Errorf("%s: want a number", word)
			}
		case name == "skip" && skipReasons[value].why != "":
			b.skip = value
		case name == "needs" && value != "":
			b.needs = value
		case word == "background":
			b.inBack = true
		default:
			return fmt.Errorf("%s: unknown mark, or one without a valid value", word)
		}
	}
	if b.language == "sh" && b.title != "" {
		return fmt.Errorf("title=%s: a sh block is run, not written", b.title)
	}
	return nil
}

// TestParse checks the marks, and the blocks that a page may not have.
func TestParse(t *testing.T) {
	t.Parallel()
	const good = "# T\n\n```sh exit=1\nfalse\n```\n\n```text\n…\n```\n\nText.\n\n```text\na diagram\n```\n\n`a/b.js`:\n\n```js title=a/b.js\n1\n```\n"
	blocks, err := parse([]byte(good + "\n<!-- a comment -->\n\n<!-- sh\nhidden\n-->\n"))
	if err != nil || len(blocks) != 5 {
		t.Fatalf("parse = %d blocks, error %v, want 5 and none", len(blocks), err)
	}
	if b := blocks[4]; b.code != "hidden\n" || b.language != "sh" || b.line != 26 {
		t.Errorf("the block of the comment is %+v, want sh, hidden, line 26", b)
	}
	if b := blocks[0]; b.line != 4 || b.exit != 1 || b.expected != blocks[1] || b.code != "false\n" {
		t.Errorf("the sh block is %+v, want line 4, exit 1 and its output", b)
	}
	if !blocks[1].isOutput || blocks[2].isOutput || blocks[3].title != "a/b.js" {
		t.Errorf("blocks = %+v %+v %+v, want an output, a diagram and a file", blocks[1], blocks[2], blocks[3])
	}
	for _, tt := range []struct{ source, want string }{
		{"    indented\n", "indented"},
		{"```\nx\n```\n", "no language"},
		{"```sh skip=because\nx\n```\n", "skip=because"},
		{"```sh skip\nx\n```\n", "skip: unknown mark"},
		{"```sh exit=x\nx\n```\n", "want a number"},
		{"In `c.js`:\n\n```js title=b.js\nx\n```\n", "does not name `b.js`"},
		{"```js background\nx\n```\n", "only sh blocks"},
		{"```js title=../x\nx\n```\n", "title=../x"},
		{"```sh title=x\nx\n```\n", "run, not written"},
	} {
		if _, err := parse([]byte(tt.source)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("parse(%q) = %v, want an error with %q", tt.source, err, tt.want)
		}
	}
}
