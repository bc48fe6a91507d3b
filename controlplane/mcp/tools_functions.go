package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// functionTools are the tools about functions and their versions.
func functionTools() []*tool {
	return []*tool{
		{
			name: "sous_list_functions", title: "List functions", description: "List the functions of a namespace by name.",
			action: access.FunctionRead, hints: readOnly, properties: inNamespace + ", " + ofPage, run: by(listFunctions),
		},
		{
			name: "sous_get_function", title: "Read a function", description: "Read a function with its latest version, its aliases and the configuration of a version.",
			action: access.FunctionRead, hints: readOnly, properties: ofFunction + ", " + ofVersion, required: []string{"function"}, run: by(getFunction),
		},
		{
			name: "sous_list_versions", title: "List versions", description: "List the versions of a function, newest first.",
			action: access.FunctionRead, hints: readOnly, properties: ofFunction + ", " + ofPage, required: []string{"function"}, run: by(listVersions),
		},
		{
			name: "sous_read_source", title: "Read source code",
			description: "Read the files of a version of a function, or one file.",
			action:      access.FunctionRead, hints: readOnly, properties: ofFunction + ", " + ofVersion + `, "path": {"type": "string", "description": "one file; default: all"}`,
			required: []string{"function"}, run: by(readSource),
		},
		{
			name: "sous_publish_function", title: "Publish a function",
			description: "Publish files as the next version of a function, which is created if it does not exist, and point an alias at the version. " +
				"The files replace all files of the function. Try them with sous_test_function first.",
			action: access.FunctionPublish, properties: ofFunction + ", " + ofFiles + `, "alias": {"type": "string", "description": "default: prod"}`,
			required: []string{"function", "files"}, run: by(publishFunction),
		},
		{
			name: "sous_rollback_function", title: "Roll back a function",
			description: "Point an alias of a function at an earlier version: the one before, or the one that is named.",
			action:      access.AliasSet, properties: ofFunction + `, "alias": {"type": "string", "description": "default: prod"}, "version": {"type": "integer", "minimum": 1}`,
			required: []string{"function"}, run: by(rollbackFunction),
		},
	}
}

// page is a page of a list, as arguments ask for it.
type page struct {
	Limit  int    `json:"limit"`
	Cursor string `json:"cursor"`
}

// query returns the parameters of a list.
func (p page) query() map[string][]string {
	q := map[string][]string{}
	if p.Limit > 0 {
		q["limit"] = []string{strconv.Itoa(p.Limit)}
	}
	if p.Cursor != "" {
		q["cursor"] = []string{p.Cursor}
	}
	return q
}

// list answers with a list of the API.
func (s *session) list(ctx context.Context, path string, query map[string][]string) (json.RawMessage, error) {
	got, err := s.do(ctx, operation{method: http.MethodGet, path: path, query: query})
	return got.body, err
}

func listFunctions(ctx context.Context, s *session, a struct {
	place
	page
}) (json.RawMessage, error) {
	return s.list(ctx, s.tenantPath("namespaces", s.in(a.Namespace), "functions"), a.query())
}

func listVersions(ctx context.Context, s *session, a struct {
	place
	page
}) (json.RawMessage, error) {
	return s.list(ctx, a.path(s, "versions"), a.query())
}

// versionArguments name a version of a function, by its number or an alias.
type versionArguments struct {
	place
	Version int64  `json:"version"`
	Alias   string `json:"alias"`
}

// number returns the number of the version.
func (a *versionArguments) number(ctx context.Context, s *session) (int64, error) {
	if a.Version > 0 {
		return a.Version, nil
	}
	alias, err := read[api.Alias](ctx, s, a.path(s, "aliases", orProd(a.Alias)))
	return alias.Version, err
}

func orProd(alias string) string {
	if alias == "" {
		return api.DefaultAlias
	}
	return alias
}

func getFunction(ctx context.Context, s *session, a versionArguments) (json.RawMessage, error) {
	fn, err := s.do(ctx, operation{method: http.MethodGet, path: a.path(s)})
	if err != nil {
		return nil, err
	}
	n, err := a.number(ctx, s)
	if codeOf(err) == api.CodeAliasNotFound && a.Alias == "" {
		return encode(map[string]any{"function": json.RawMessage(fn.body), "version": nil})
	}
	if err != nil {
		return nil, err
	}
	version, err := s.do(ctx, operation{method: http.MethodGet, path: a.path(s, "versions", strconv.FormatInt(n, 10))})
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"function": json.RawMessage(fn.body), "version": json.RawMessage(version.body)})
}

func readSource(ctx context.Context, s *session, a struct {
	versionArguments
	Path string `json:"path"`
}) (json.RawMessage, error) {
	n, err := a.number(ctx, s)
	if err != nil {
		return nil, err
	}
	files, err := s.files(ctx, s.in(a.Namespace), a.Function, n, maxSource)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for name, content := range files {
		if (a.Path == "" || a.Path == name) && utf8.Valid(content) {
			texts[name] = string(content)
		}
	}
	if a.Path != "" && len(texts) == 0 {
		return nil, fmt.Errorf("version %d has no file %q; it has %q", n, a.Path, slices.Sorted(maps.Keys(files)))
	}
	return encode(map[string]any{"version": n, "files": texts})
}

// publication are the files and settings of a version.
type publication struct {
	place
	Files  map[string]string          `json:"files"`
	Config map[string]json.RawMessage `json:"config"`
	Alias  string                     `json:"alias"`
}

func publishFunction(ctx context.Context, s *session, a publication) (json.RawMessage, error) {
	a.Alias = orProd(a.Alias)
	made, err := a.publish(ctx, s, a.Alias)
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"function": a.Function, "version": made.Version, "alias": a.Alias, "created": made.created})
}

// published is the answer to a publication.
type published struct {
	Version int64 `json:"version"`
	created bool
}

// publish publishes the files as a version, and points alias at it, unless that is "".
func (a *publication) publish(ctx context.Context, s *session, alias string) (published, error) {
	if err := a.readSettings(); err != nil {
		return published{}, err
	}
	packed, err := a.pack()
	if err != nil {
		return published{}, err
	}
	config, err := a.merged(ctx, s)
	if err != nil {
		return published{}, err
	}
	draft, err := a.upload(ctx, s, packed)
	if err != nil {
		return published{}, err
	}
	body := map[string]any{"draft_id": draft.DraftID, "config": config}
	if alias != "" {
		body["alias"] = alias
	}
	got, err := s.do(ctx, operation{method: http.MethodPost, path: a.path(s, "versions"), body: body})
	if err != nil {
		return published{}, err
	}
	made := published{created: got.status == http.StatusCreated}
	return made, json.Unmarshal(got.body, &made)
}

// readSettings takes the settings of a version from the file sous.json, which is no part of a bundle.
func (a *publication) readSettings() error {
	text, ok := a.Files[manifest.SettingsFile]
	if !ok {
		return nil
	}
	settings, err := manifest.ParseSettings([]byte(text))
	if err != nil {
		return err
	}
	if len(settings.Schedules) > 0 || len(settings.Triggers.Queues) > 0 || settings.Entry != "" || len(settings.Aliases) > 0 || settings.Name != "" {
		return fmt.Errorf("%s: this tool takes only the settings of a version; deploy the function by `sous fn deploy` for name, entry, aliases, schedules and triggers", manifest.SettingsFile)
	}
	delete(a.Files, manifest.SettingsFile)
	config := settings.Config
	maps.Copy(config, a.Config)
	a.Config = config
	return nil
}

// pack returns the tar of the files.
func (a *publication) pack() ([]byte, error) {
	files := make(map[string][]byte, len(a.Files))
	for name, text := range a.Files {
		files[name] = []byte(text)
	}
	return bundle.Pack(files)
}

// merged returns the config of the publication: what the running version has, replaced by what the
// arguments name. Without it, a caller that changes the code would open a function that is restricted to
// some roles.
func (a *publication) merged(ctx context.Context, s *session) (map[string]json.RawMessage, error) {
	merged := map[string]json.RawMessage{}
	now, err := a.running(ctx, s)
	if err != nil {
		return nil, err
	}
	if now > 0 {
		fn, err := read[api.FunctionDetail](ctx, s, a.path(s))
		if err != nil {
			return nil, err
		}
		version, err := read[api.Version](ctx, s, a.path(s, "versions", strconv.FormatInt(now, 10)))
		if err != nil {
			return nil, err
		}
		files, err := s.files(ctx, s.in(a.Namespace), a.Function, now, api.MaxBundleBytes+maxAnswer)
		if err != nil {
			return nil, err
		}
		merged, err = manifest.Overrides(fn.Function, version.Config, files)
		if err != nil {
			return nil, err
		}
	}
	for name, value := range a.Config {
		if string(value) == "null" {
			delete(merged, name)
		} else {
			merged[name] = value
		}
	}
	return merged, nil
}

// running returns the number of the version that the alias of the publication points at, else the latest
// one, 0 for none.
func (a *publication) running(ctx context.Context, s *session) (int64, error) {
	alias, err := read[api.Alias](ctx, s, a.path(s, "aliases", orProd(a.Alias)))
	switch codeOf(err) {
	case api.CodeFunctionNotFound:
		return 0, nil
	case api.CodeAliasNotFound:
	default:
		return alias.Version, err
	}
	fn, err := read[api.FunctionDetail](ctx, s, a.path(s))
	if err != nil || fn.LatestVersion == nil {
		return 0, err
	}
	return *fn.LatestVersion, nil
}

// upload stores the draft, and creates the function if it does not exist.
func (a *publication) upload(ctx context.Context, s *session, packed []byte) (api.DraftReceipt, error) {
	put := operation{method: http.MethodPut, path: a.path(s, "draft"), tar: packed}
	got, err := s.do(ctx, put)
	if codeOf(err) == api.CodeFunctionNotFound {
		_, err = s.do(ctx, operation{
			method: http.MethodPost, path: s.tenantPath("namespaces", s.in(a.Namespace), "functions"), body: map[string]any{"name": a.Function},
		})
		if err != nil && codeOf(err) != api.CodeFunctionExists {
			return api.DraftReceipt{}, err
		}
		got, err = s.do(ctx, put)
	}
	if err != nil {
		return api.DraftReceipt{}, err
	}
	var draft api.DraftReceipt
	return draft, json.Unmarshal(got.body, &draft)
}

// rollbackFunction points the alias at an earlier version. The write is conditional, so it does not undo a
// deployment of the meantime.
func rollbackFunction(ctx context.Context, s *session, a versionArguments) (json.RawMessage, error) {
	alias := a.path(s, "aliases", orProd(a.Alias))
	now, err := read[api.Alias](ctx, s, alias)
	if err != nil {
		return nil, err
	}
	to := a.Version
	if to == 0 {
		to = now.Version - 1
	}
	if to < 1 {
		return nil, fmt.Errorf("%s points at version %d: there is none before it", orProd(a.Alias), now.Version)
	}
	_, err = s.do(ctx, operation{
		method: http.MethodPut, path: alias, body: map[string]any{"version": to},
		header: http.Header{"If-Match": {rest.RevisionTag(now.Version)}},
	})
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"function": a.Function, "alias": orProd(a.Alias), "version": to, "was": now.Version})
}
