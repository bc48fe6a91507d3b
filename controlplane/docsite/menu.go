package docsite

// A section is a heading of the menu with the files of its pages, in reading order.
type section struct {
	title string
	files []string
}

// menu is the order of the pages. Every page of package docs is in it once; a file that
// does not exist is left out, and a page that is missing here is refused by a test.
var menu = []section{
	{"Start", []string{"README.md", "start.md"}},
	{"Tutorial", []string{"tutorial.md"}},
	{"Concepts", []string{"concepts.md", "glossary.md", "architecture.md"}},
	{"Guides", []string{
		"functions.md", "http.md", "npm.md", "typescript.md", "testing.md", "queue.md", "workers.md", "schedules.md", "tasks.md", "events.md", "webhooks.md", "approvals.md", "search.md", "cadence.md",
		"ai.md", "agents.md", "mcp.md", "steps.md", "secrets.md", "documents.md", "access.md", "console.md", "observability.md", "tracing.md", "mirror.md",
	}},
	{"Operate", []string{"deploy.md", "operate.md", "limits.md", "storage.md", "sandbox.md", "security.md", "metrics.md", "benchmarks.md", "upgrade.md", "troubleshooting.md"}},
	{"Reference", []string{"api.md", "cli.md", "configuration.md", "errors.md", "javascript.md", "web-apis.md", "dependencies.md"}},
	{"Design decisions", []string{
		"decisions/README.md", "decisions/activation-visibility.md", "decisions/binary-size.md", "decisions/embedded-store.md", "decisions/error-dialects.md",
		"decisions/keyset-cursors.md", "decisions/no-raft.md", "decisions/process-sandbox.md", "decisions/record-ordering.md",
	}},
	{"Compare", []string{"compare.md"}},
	{"FAQ", []string{"faq.md"}},
	{"Changelog", []string{"changelog.md", "CHANGELOG.md"}},
}
