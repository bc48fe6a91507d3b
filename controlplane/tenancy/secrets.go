package tenancy

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/webhooks"
)

const (
	pathSecrets = rest.PathNamespace + "/secrets"
	pathSecret  = pathSecrets + "/{secret}"
	pathRewrap  = rest.PathTenant + "/secrets:rewrap"
)

type secretName string

// Schema returns the pattern of secrets.
func (secretName) Schema(huma.Registry) *huma.Schema { return rest.PatternSchema(api.SecretPattern) }

// SecretPath holds the parameters of a secret's path.
type SecretPath struct {
	rest.NamespacePath
	Secret secretName `path:"secret"`
}

// Resolve refuses a name that does not match its pattern.
func (p *SecretPath) Resolve(huma.Context) []error {
	return rest.Problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)), api.ValidateSecretName(string(p.Secret)))
}

// place returns the path's names as secrets.Secrets takes them.
func (p *SecretPath) place() (secrets.Place, string) {
	return secrets.Place{Tenant: string(p.Tenant), Namespace: string(p.Namespace)}, string(p.Secret)
}

// SecretCondition holds the precondition of a write. At most one of the two may be set.
type SecretCondition struct {
	IfMatch     string `header:"If-Match" doc:"the ETag that the secret must have now"`
	IfNoneMatch string `header:"If-None-Match" doc:"* if the secret must not exist"`
}

// secretBody is the body of a write. It only describes the body in the OpenAPI document;
// secretValue decodes it.
type secretBody struct {
	Value string `json:"value" minLength:"1" maxLength:"32768" doc:"UTF-8 text; no response returns it"`
}

// putSecretInput takes the raw body: huma's errors quote parts of a body that it cannot
// decode.
type putSecretInput struct {
	SecretPath
	SecretCondition
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte `contentType:"application/json"`
}

type secretInput struct{ SecretPath }

type deleteSecretInput struct {
	SecretPath
	IfMatch string `header:"If-Match" doc:"the ETag that the secret must have now"`
}

type listSecretsInput struct {
	rest.NamespacePath
	rest.PageQuery
}

// rewrapInput has no limit: a call handles a number of secrets that the server chooses.
type rewrapInput struct {
	rest.TenantPath
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the previous call"`
}

type secretOutput struct {
	Status int
	ETag   string `header:"ETag"`
	Body   api.Secret
}

type rewrapOutput struct{ Body api.RewrapReport }

// secretEndpoints declares the routes of secrets. Writing needs cs:secret:write, which is
// apart from cs:function:publish. A function reads a secret only if its version declares the
// name, and each read is counted in the audit.
func (a *API) secretEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodPut, Path: pathSecret, Action: access.SecretWrite, Extent: rest.PathNamespaceOnly,
			ID: "put-secret", Tag: "secrets", Summary: "Write a secret",
			Description: "201 for a new secret, otherwise 200 and its next version. The value is sealed, and no route returns it. " +
				"If-Match with the secret's ETag, its version, guards the write; If-None-Match: * only creates.",
			Request: rest.JSON(secretBody{}), // secretValue reads it: huma's errors quote the body
			Also:    []rest.Answer{{Status: http.StatusCreated, Content: rest.JSON(api.Secret{})}},
		}, a.putSecret),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathSecrets, Action: access.SecretRead, Extent: rest.PathNamespaceOnly,
			ID: "list-secrets", Tag: "secrets", Summary: "List a namespace's secrets by name, with versions and dates and without values",
		}, a.listSecrets),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathSecret, Action: access.SecretRead, Extent: rest.PathNamespaceOnly,
			ID: "get-secret", Tag: "secrets", Summary: "Read the metadata of a secret, without its value", Description: "The ETag is its version.",
		}, a.getSecret),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathSecret, Action: access.SecretDelete, Extent: rest.PathNamespaceOnly,
			ID: "delete-secret", Tag: "secrets", Summary: "Delete a secret", Description: "Functions that declare it can no longer read it. If-Match guards the deletion.",
		}, a.deleteSecret),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathRewrap, Action: access.SecretRewrap, Extent: rest.WholeTenant,
			ID: "rewrap-secrets", Tag: "secrets", Summary: "Seal the secrets that an older key sealed again, with the first key of the server",
			Description: "For the rotation of keys. A call handles a part of the tenant's secrets; continue with next_cursor until it is null. A call may be repeated.",
		}, a.rewrapSecrets),
	}
}

// putSecret writes a secret, and answers 201 for a new one. The audit log gets its
// name and version, as in "stripe@3". Errors: CodeValidationJSON, CodeInvalid, CodeMediaType,
// CodePreconditionFailed, CodeSecretLimit, CodeSecretKeyMissing if the server has no key
// file.
func (a *API) putSecret(ctx context.Context, in *putSecretInput) (*secretOutput, error) {
	place, name := in.place()
	value, err := secretValue(in.ContentType, in.RawBody)
	if err != nil {
		return nil, err
	}
	on, err := a.secretCondition(ctx, &in.SecretPath, &in.SecretCondition)
	if err != nil {
		return nil, err
	}
	made, created, err := a.secrets.Put(ctx, place, name, value, rest.CallerOf(ctx).Sub, on)
	if err != nil {
		return nil, err
	}
	out := answerSecret(made)
	rest.NoteMade(ctx, made.Name+"@"+strings.Trim(out.ETag, `"`))
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

// secretValue decodes {"value": "…"} strictly. Its errors quote nothing of the body, which
// holds a secret, perhaps misplaced: neither a field's name nor a piece of malformed JSON.
// Errors: CodeMediaType, CodeValidationJSON, CodeInvalid.
func secretValue(contentType string, body []byte) (string, error) {
	if kind, _, err := mime.ParseMediaType(contentType); contentType != "" && (err != nil || kind != rest.ContentTypeJSON) {
		return "", api.Errorf(api.CodeMediaType, "the body must be application/json")
	}
	if !utf8.Valid(body) || !json.Valid(body) {
		return "", api.Errorf(api.CodeValidationJSON, `the body cannot be read: it must be {"value": "…"}, JSON in UTF-8`)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return "", api.Errorf(api.CodeInvalid, `the body must be an object, {"value": "…"}`)
	}
	raw, given := fields["value"]
	var value *string
	switch {
	case !given:
		return "", api.Errorf(api.CodeInvalid, "value is required").WithFields(api.FieldError{Path: "value", Message: "is required"})
	case len(fields) > 1:
		return "", api.Errorf(api.CodeInvalid, "the body must have no field but value")
	case json.Unmarshal(raw, &value) != nil || value == nil:
		return "", api.InvalidField("value", "must be a string")
	}
	return *value, api.ValidateSecretValue(*value)
}

// secretCondition returns the precondition of a write, which the store checks again in
// the step that writes. Errors: CodePreconditionFailed, CodeInvalid.
func (a *API) secretCondition(ctx context.Context, p *SecretPath, c *SecretCondition) (secrets.Condition, error) {
	if err := rest.OnePrecondition(c.IfMatch, c.IfNoneMatch); err != nil {
		return secrets.Condition{}, err
	}
	version, err := a.matchSecret(ctx, p, c.IfMatch)
	return secrets.Condition{IfMatch: version, IfNew: c.IfNoneMatch != ""}, err
}

// matchSecret returns the version that the secret must have by an If-Match, nil for
// any. A secret that does not exist matches nothing, not even *. Errors:
// CodePreconditionFailed.
func (a *API) matchSecret(ctx context.Context, p *SecretPath, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil //nolint:nilnil // documented: no precondition
	}
	place, name := p.place()
	found, err := a.secrets.Get(ctx, place, name)
	if err != nil && api.ErrorCode(err) != api.CodeSecretNotFound {
		return nil, err
	}
	if err == nil && rest.NamesTag(ifMatch, rest.RevisionTag(found.Version)) {
		return &found.Version, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the secret does not have the ETag that If-Match names")
}

// answerSecret answers with a secret without its value. Its ETag is its version, which
// increases even when a deleted secret is written again, so no tag ever returns.
func answerSecret(secret api.Secret) *secretOutput {
	return &secretOutput{Status: http.StatusOK, ETag: rest.RevisionTag(secret.Version), Body: secret}
}

// getSecret answers with a secret's version, times and author. Errors: CodeSecretNotFound.
func (a *API) getSecret(ctx context.Context, in *secretInput) (*secretOutput, error) {
	place, name := in.place()
	found, err := a.secrets.Get(ctx, place, name)
	if err != nil {
		return nil, err
	}
	return answerSecret(found), nil
}

// listSecrets answers with a page of a namespace's secrets by name, without values.
func (a *API) listSecrets(ctx context.Context, in *listSecretsInput) (*rest.PageOutput[api.Secret], error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	return rest.ReadPage(rest.ListScope("secrets", tenant, namespace), in.Cursor, func(after string) ([]api.Secret, string, error) {
		return a.secrets.List(ctx, secrets.Place{Tenant: tenant, Namespace: namespace}, after, in.Limit)
	})
}

// deleteSecret deletes a secret. Runs that have opened it keep its value until they end.
// Errors: CodeSecretNotFound, CodePreconditionFailed.
func (a *API) deleteSecret(ctx context.Context, in *deleteSecretInput) (*struct{}, error) {
	place, name := in.place()
	version, err := a.matchSecret(ctx, &in.SecretPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	return nil, a.secrets.Delete(ctx, place, name, version)
}

// rewrapSecrets re-encrypts a bounded number of a tenant's secrets, and in the first call those of
// its webhooks, with the server's first key; next_cursor is the position of the next call, null at the end. It is the
// second step of a rotation:
//
//	sous secret keygen --rotate   a new first key in the file; the old ones still open
//	POST T/secrets:rewrap         until next_cursor is null, for every tenant
//	                              then the old keys can be removed from the file
//
// Values, versions and ETags stay. Errors: CodeSecretKeyMissing, CodeValidationCursor.
func (a *API) rewrapSecrets(ctx context.Context, in *rewrapInput) (*rewrapOutput, error) {
	list := rest.ListScope("rewrap", string(in.Tenant))
	after, err := list.Open(in.Cursor)
	if err != nil {
		return nil, err
	}
	report, next, err := a.secrets.Rewrap(ctx, string(in.Tenant), after)
	if err != nil {
		return nil, err
	}
	if after == "" {
		if err := webhooks.New(a.store, a.secrets).Rewrap(ctx, string(in.Tenant), &report); err != nil {
			return nil, err
		}
	}
	report.NextCursor = list.Seal(next)
	return &rewrapOutput{Body: report}, nil
}
