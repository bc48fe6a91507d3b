// Package docs holds the pages of the documentation, as the binary serves them below
// /docs. The pages are written to be read in the repository, too: links between them name
// the files.
package docs

import "embed"

// Pages holds every page, by its path below this folder.
//
//go:embed *.md decisions/*.md
var Pages embed.FS
