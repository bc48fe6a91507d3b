package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/docs"
)

// The URIs of resources.
const (
	uriScheme      = "sous://"
	uriDocs        = uriScheme + "docs/"
	uriFunctions   = uriScheme + "functions/"
	uriActivations = uriScheme + "activations/"
)

const (
	typeMarkdown = "text/markdown"
	typeText     = "text/plain"
	typeJSON     = "application/json"
)

// library has the pages of the documentation.
type library struct {
	names []string // without .md, sorted
	pages map[string]string
}

func newLibrary() *library {
	l := &library{pages: map[string]string{}}
	names, err := fs.Glob(docs.Pages, "*.md")
	if err != nil {
		panic("mcp: " + err.Error()) // the pattern is constant
	}
	for _, name := range names {
		text, err := fs.ReadFile(docs.Pages, name)
		if err != nil {
			panic("mcp: " + err.Error()) // it is embedded
		}
		l.pages[strings.TrimSuffix(name, ".md")] = string(text)
	}
	l.names = slices.Sorted(maps.Keys(l.pages))
	return l
}

// title returns the heading of a page.
func (l *library) title(name string) string {
	heading, _, _ := strings.Cut(l.pages[name], "\n")
	return strings.TrimPrefix(heading, "# ")
}

// listResources answers a page of resources: first the pages of the documentation, then the functions that
// the caller may read, by name.
func (a *API) listResources(ctx context.Context, s *session, cursor string) (*sdk.ListResourcesResult, error) {
	after, err := openCursor(cursor)
	if err != nil {
		return nil, err
	}
	result := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, Cacheable: sdk.Cacheable{TTLMs: listTTL, CacheScope: "private"}}
	if after == "" {
		pages := a.pages()
		for _, name := range pages.names {
			result.Resources = append(result.Resources, &sdk.Resource{
				URI: uriDocs + name, Name: name, Title: pages.title(name), MIMEType: typeMarkdown, Size: int64(len(pages.pages[name])),
			})
		}
	}
	if !s.may(access.FunctionRead) {
		return result, nil
	}
	functions, next, err := a.functions.functions.List(ctx, s.tenant, s.namespace, after, api.MaxPageLimit)
	if err != nil {
		return nil, err
	}
	for i := range functions {
		result.Resources = append(result.Resources, &sdk.Resource{
			URI: uriFunctions + s.namespace + "/" + functions[i].Name, Name: functions[i].Name, MIMEType: typeJSON,
			Description: "the function, its versions and aliases, and the files of the version that prod points at",
		})
	}
	result.NextCursor = sealCursor(next)
	return result, nil
}

func resourceTemplates() *sdk.ListResourceTemplatesResult {
	return &sdk.ListResourceTemplatesResult{ResourceTemplates: []*sdk.ResourceTemplate{
		{URITemplate: uriDocs + "{page}", Name: "docs", Title: "A page of the documentation", MIMEType: typeMarkdown},
		{URITemplate: uriFunctions + "{namespace}/{function}", Name: "function", Title: "A function, and the names of its files", MIMEType: typeJSON},
		{URITemplate: uriFunctions + "{namespace}/{function}/{version}/{+path}", Name: "source", Title: "A file of a version, which is a number or an alias", MIMEType: typeText},
		{URITemplate: uriActivations + "{activation_id}", Name: "activation", Title: "An activation", MIMEType: typeJSON},
		{URITemplate: uriActivations + "{activation_id}/logs", Name: "logs", Title: "The log of an activation", MIMEType: typeText},
	}}
}

// readResource answers with a resource. The routes that it reads decide whether the caller may.
func (a *API) readResource(ctx context.Context, s *session, uri string) (*sdk.ReadResourceResult, error) {
	text, contentType, err := a.resource(ctx, s, uri)
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{
		Contents:  []*sdk.ResourceContents{{URI: uri, MIMEType: contentType, Text: text}},
		Cacheable: sdk.Cacheable{TTLMs: listTTL, CacheScope: "private"},
	}, nil
}

// resource returns the text of a resource and its type.
func (a *API) resource(ctx context.Context, s *session, uri string) (text, contentType string, err error) {
	if name, ok := strings.CutPrefix(uri, uriDocs); ok {
		if page := a.pages().pages[name]; page != "" {
			return page, typeMarkdown, nil
		}
	}
	if rest, ok := strings.CutPrefix(uri, uriFunctions); ok {
		parts := strings.SplitN(rest, "/", 4)
		for i := range parts {
			parts[i], err = url.PathUnescape(parts[i])
			if err != nil {
				return "", "", sdk.ResourceNotFoundError(uri)
			}
		}
		switch len(parts) {
		case 2:
			return s.functionResource(ctx, parts[0], parts[1])
		case 4:
			return s.fileResource(ctx, uri, parts)
		}
	}
	if rest, ok := strings.CutPrefix(uri, uriActivations); ok {
		id, logs := strings.CutSuffix(rest, "/logs")
		switch {
		case api.ValidateActivationID(id) != nil:
		case logs:
			text, err = s.log(ctx, id)
			return text, typeText, err
		default:
			raw, err := s.list(ctx, s.tenantPath("activations", id), nil)
			return string(raw), typeJSON, err
		}
	}
	return "", "", sdk.ResourceNotFoundError(uri)
}

// functionResource returns a function, and the names of the files of the version that prod points at.
func (s *session) functionResource(ctx context.Context, namespace, function string) (text, contentType string, err error) {
	at := versionArguments{place: place{namespace, function}}
	fn, err := s.do(ctx, operation{method: http.MethodGet, path: at.path(s)})
	if err != nil {
		return "", "", err
	}
	out := map[string]any{"function": json.RawMessage(fn.body)}
	n, err := at.number(ctx, s)
	switch {
	case codeOf(err) == api.CodeAliasNotFound:
	case err != nil:
		return "", "", err
	default:
		files, err := s.files(ctx, namespace, function, n, maxSource)
		if err != nil {
			return "", "", err
		}
		uris := []string{}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			uris = append(uris, uriFunctions+namespace+"/"+function+"/"+strconv.FormatInt(n, 10)+"/"+(&url.URL{Path: name}).EscapedPath())
		}
		out["version"], out["files"] = n, uris
	}
	raw, err := encode(out)
	return string(raw), typeJSON, err
}

// fileResource returns a file: parts are the namespace, the function, the version or alias, and the path.
func (s *session) fileResource(ctx context.Context, uri string, parts []string) (text, contentType string, err error) {
	at := versionArguments{place: place{parts[0], parts[1]}, Alias: parts[2]}
	if n, err := strconv.ParseInt(parts[2], 10, 64); err == nil {
		at.Version = n
	}
	n, err := at.number(ctx, s)
	if err != nil {
		return "", "", err
	}
	files, err := s.files(ctx, parts[0], parts[1], n, maxSource)
	if err != nil {
		return "", "", err
	}
	content, ok := files[parts[3]]
	switch {
	case !ok || !utf8.Valid(content):
		return "", "", sdk.ResourceNotFoundError(uri)
	case len(content) > maxAnswer:
		return "", "", invalidParams("the file exceeds %s", api.SizeText(maxAnswer))
	}
	return string(content), typeText, nil
}

// log returns the first lines of the log of an activation, as many as one page has.
func (s *session) log(ctx context.Context, id string) (string, error) {
	raw, err := s.list(ctx, s.tenantPath("activations", id, "logs"), page{Limit: api.MaxPageLimit}.query())
	if err != nil {
		return "", err
	}
	var lines api.Page[api.LogLine]
	if err := json.Unmarshal(raw, &lines); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, line := range lines.Items {
		message := string(line.Message)
		var plain string
		if json.Unmarshal(line.Message, &plain) == nil {
			message = plain
		}
		fmt.Fprintf(&b, "%s %-5s %s\n", time.UnixMilli(line.TSMS).UTC().Format("2006-01-02T15:04:05.000Z"), line.Level, message)
	}
	return b.String(), nil
}
