package functions

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathVersions = pathFunction + "/versions"
	pathVersion  = pathVersions + "/{version}"
)

// publishBody is the body of a publication. Config stays raw: package manifest validates
// it, with paths below config.
type publishBody struct {
	DraftID string          `json:"draft_id" doc:"the draft_id of the answer to the upload"`
	Config  json.RawMessage `json:"config,omitempty" doc:"over the manifest: timeout_ms, cpu_ms, memory_mb, max_concurrency, env, capabilities, authz, cors"`
	Alias   string          `json:"alias,omitempty" doc:"an alias to point at the version"`
	Verify  *bool           `json:"verify,omitempty" doc:"false publishes modules that may fail when they are loaded; default true"`
}

type publishInput struct {
	FunctionPath
	Body publishBody
}

// publishedVersion is the answer to a publication. GET F/versions/{n} has the rest.
type publishedVersion struct {
	Version       int64  `json:"version"`
	SHA256        string `json:"sha256"`
	PublishedAtMS int64  `json:"published_at_ms"`
}

type publishOutput struct {
	Status int
	Body   publishedVersion
}

// VersionPath holds the parameters of a version's path. The version is text, so that
// ParseVersion refuses forms such as 01 and +1 with CodeValidationName.
type VersionPath struct {
	FunctionPath
	Version string `path:"version" doc:"a version number"`
}

type bundleInput struct {
	VersionPath
	IfNoneMatch string `header:"If-None-Match"`
}

type versionOutput struct{ Body api.Version }

type listVersionsInput struct {
	FunctionPath
	rest.PageQuery
}

// bundleOutput is the tar, or a 304 without a body. huma writes a []byte as it is.
type bundleOutput struct {
	Status      int
	ContentType string `header:"Content-Type"`
	ETag        string `header:"ETag"`
	Body        []byte
}

// versionEndpoints declares the routes of versions. There is none that changes or deletes
// one.
func (a *API) versionEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathVersions, Action: access.FunctionPublish, Extent: rest.PathNamespaceOnly,
			ID: "publish-version", Tag: "versions", Summary: "Publish a draft as the next version", Status: http.StatusCreated,
			Description: "Answers 200 with the latest version if its files and configuration equal those of the draft.",
			Also:        []rest.Answer{{Status: http.StatusOK, Content: rest.JSON(publishedVersion{})}},
		}, a.publishVersion),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathVersions, Action: access.FunctionRead, Extent: rest.PathNamespaceOnly,
			ID: "list-versions", Tag: "versions", Summary: "List a function's versions, newest first",
		}, a.listVersions),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathVersion, Action: access.FunctionRead, Extent: rest.PathNamespaceOnly,
			ID: "get-version", Tag: "versions", Summary: "Read a version",
		}, a.getVersion),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathVersion + "/bundle", Action: access.FunctionRead, Extent: rest.PathNamespaceOnly,
			ID: "get-version-bundle", Tag: "versions", Summary: "Download a version's tar, byte for byte", Description: "The ETag is its SHA-256.",
			Also: []rest.Answer{
				{Status: http.StatusOK, Content: rest.Content{contentTypeTar: nil}},
				{Status: http.StatusNotModified, Description: "If-None-Match names the ETag"},
			},
		}, a.getBundle),
	}
}

// publishVersion answers 201 for a new version, and 200 if the draft equals the latest
// one, which happens when a pipeline publishes an unchanged tree again. In both cases the
// alias of the request points at the version in the answer. Errors: those of
// Publisher.Publish.
func (a *API) publishVersion(ctx context.Context, in *publishInput) (*publishOutput, error) {
	tenant, namespace, function := in.names()
	caller := rest.CallerOf(ctx)
	version, created, err := a.publisher.Publish(ctx, PublishRequest{
		By: caller.Principal(), Access: caller.Access(),
		Tenant: tenant, Namespace: namespace, Function: function,
		DraftID: in.Body.DraftID, Config: in.Body.Config, Alias: in.Body.Alias,
		Unverified: in.Body.Verify != nil && !*in.Body.Verify,
	})
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		rest.NoteMade(ctx, "version "+strconv.FormatInt(version.Version, 10))
	}
	return &publishOutput{Status: status, Body: publishedVersion{
		Version: version.Version, SHA256: version.SHA256, PublishedAtMS: version.PublishedAtMS,
	}}, nil
}

// listVersions answers with a page of a function's versions, newest first. The position of
// a cursor is the lowest version number of its page; below it the next page begins. An
// empty first page costs one more read, to tell a function without versions from one that
// does not exist.
func (a *API) listVersions(ctx context.Context, in *listVersionsInput) (*rest.PageOutput[api.Version], error) {
	tenant, namespace, function := in.names()
	return rest.ReadPage(rest.ListScope("versions", tenant, namespace, function), in.Cursor, func(position string) ([]api.Version, string, error) {
		var before int64
		if position != "" {
			var err error
			before, err = api.ParseVersion(position)
			if err != nil {
				return nil, "", rest.CursorError()
			}
		}
		items, next, err := a.versions.List(ctx, tenant, namespace, function, before, in.Limit)
		if err == nil && len(items) == 0 && before == 0 {
			// The function has no versions, or does not exist.
			_, err = a.functions.Get(ctx, tenant, namespace, function)
		}
		if next == 0 {
			return items, "", err
		}
		return items, strconv.FormatInt(next, 10), err
	})
}

// getVersion answers with a version and its configuration. Errors: CodeVersionNotFound,
// also for a function that never existed; CodeValidationName. A deleted function's
// versions remain readable.
func (a *API) getVersion(ctx context.Context, in *VersionPath) (*versionOutput, error) {
	n, err := api.ParseVersion(in.Version)
	if err != nil {
		return nil, err
	}
	tenant, namespace, function := in.names()
	version, err := a.versions.Get(ctx, tenant, namespace, function, n)
	if err != nil {
		return nil, err
	}
	return &versionOutput{Body: version}, nil
}

// getBundle answers with a version's tar. Its ETag is the tar's SHA-256; a request
// whose If-None-Match names it gets a 304 and costs no read of the tar:
//
//	GET F/versions/3/bundle                              200, ETag: "9f86d0…"
//	GET F/versions/3/bundle, If-None-Match: "9f86d0…"    304 without a body
func (a *API) getBundle(ctx context.Context, in *bundleInput) (*bundleOutput, error) {
	version, err := a.getVersion(ctx, &in.VersionPath)
	if err != nil {
		return nil, err
	}
	tag := `"` + version.Body.SHA256 + `"`
	if matchesTag(in.IfNoneMatch, tag) {
		return &bundleOutput{Status: http.StatusNotModified, ETag: tag}, nil
	}
	tenant, namespace, function := in.names()
	tar, err := a.versions.Bundle(ctx, tenant, namespace, function, version.Body.Version)
	if err != nil {
		return nil, err
	}
	return &bundleOutput{Status: http.StatusOK, ContentType: contentTypeTar, ETag: tag, Body: tar}, nil
}

// matchesTag reports whether an If-None-Match names tag. Weak tags match, too: equal
// bytes have equal meaning. rest.NamesTag, for If-Match, refuses them.
func matchesTag(header, tag string) bool {
	return rest.NamesTag(header, tag) || rest.NamesTag(header, "W/"+tag)
}
