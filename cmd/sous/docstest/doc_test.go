// Package docstest executes the code blocks of the documentation: those of the pages in
// docs/ and of README.md.
//
// Each page runs in an empty folder of its own against a sous dev of its own. Its blocks
// run in order in one shell, so variables stay set from one block to the next, and the
// first command that fails ends the page. A block is
//
//	```sh                    commands, run by sh with set -e; a status of 400 or more fails curl
//	```sh exit=1             commands whose last one must exit with 1
//	```sh background         one command that runs until the page ends, as servers do
//	```sh needs=npm          commands that need npm; without npm the page is skipped
//	```sh skip=docker        commands that cannot run here, for a reason that skipReasons has
//	```text                  directly after sh: the whole output of that block, stderr included
//	```js title=a/b.js       a file that later blocks use, in any language. Readers see no
//	                         title, so the paragraph before names `a/b.js`
//
// Commands that a reader has run before, on another page, are in a comment that begins with
// "<!-- sh" and ends with "-->", each on a line of its own.
//
// In an expected output, "…" stands for any text of a line, and a line "…" for any lines.
// The addresses of the pages (http://127.0.0.1:8080, redis://127.0.0.1:6379 and the
// others of placeholders) are replaced by those of the test's servers.
//
// Blocks of other languages are compiled or parsed.
package docstest
