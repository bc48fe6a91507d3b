package functions

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathVersions = pathFunction + "/versions"
	pathVersion  = pathVersions + "/{version}"
)

// publishBody is the body of a publication.
type publishBody struct {
	DraftID string          `json:"draft_id" doc:"the draft_id of the answer to the upload"`
	Config  json.RawMessage `json:"config,omitempty" doc:"over the manifest: timeout_ms, memory_mb, max_concurrency, env, capabilities, authz, cors"`
	Alias   string          `json:"alias,omitempty" doc:"an alias to point at the version"`
}

type publishInput struct {
	FunctionPath
	Body publishBody
}

// publishedVersion is the answer to a publication.
type publishedVersion struct {
	Version       int64  `json:"version"`
	SHA256        string `json:"sha256"`
	PublishedAtMS int64  `json:"published_at_ms"`
}

type publishOutput struct {
	Status int
	Body   publishedVersion
}

// VersionPath holds the parameters of a version's path.
type VersionPath struct {
	FunctionPath
	Version string `path:"version" doc:"a version number"`
}

type bundleInput struct {
	VersionPath
	IfNoneMatch string `header:"If-None-Match"`
}

type versionOutput struct{ Body api.Version }

type versionPageOutput struct{ Body api.Page[api.Version] }

type listVersionsInput struct {
	FunctionPath
	rest.PageQuery
}

type bundleOutput struct {
	Status      int
	ContentType string `header:"Content-Type"`
	ETag        string `header:"ETag"`
	Body        []byte
}

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
// one.
func (a *API) publishVersion(ctx context.Context, in *publishInput) (*publishOutput, error) {
	tenant, namespace, function := in.names()
	version, created, err := a.publisher.Publish(ctx, PublishRequest{
		Tenant: tenant, Namespace: namespace, Function: function,
		DraftID: in.Body.DraftID, Config: in.Body.Config, Alias: in.Body.Alias,
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

func (a *API) listVersions(ctx context.Context, in *listVersionsInput) (*versionPageOutput, error) {
	tenant, namespace, function := in.names()
	list := rest.ListScope("versions", tenant, namespace, function)
	position, err := list.Open(in.Cursor)
	if err != nil {
		return nil, err
	}
	var before int64
	if position != "" {
		before, err = api.ParseVersion(position)
		if err != nil {
			return nil, rest.CursorError()
		}
	}
	items, next, err := a.versions.List(ctx, tenant, namespace, function, before, in.Limit)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 && before == 0 {
		// The function has no versions, or does not exist.
		if _, err := a.functions.Get(ctx, tenant, namespace, function); err != nil {
			return nil, err
		}
	}
	position = ""
	if next > 0 {
		position = strconv.FormatInt(next, 10)
	}
	return &versionPageOutput{Body: rest.NewPage(items, list.Seal(position))}, nil
}

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
// whose If-None-Match names it gets a 304 and costs no read of the tar.
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
// bytes have equal meaning.
func matchesTag(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
