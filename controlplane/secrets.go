package controlplane

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/secrets"
)

const (
	pathSecrets = pathNamespaces + "/{namespace}/secrets"
	pathSecret  = pathSecrets + "/{secret}"
	pathRewrap  = pathTenant + "/secrets:rewrap"
)

type secretName string

// Schema is the pattern of secrets.
func (secretName) Schema(huma.Registry) *huma.Schema { return patternSchema(api.SecretPattern) }

// SecretPath is the path of a secret.
type SecretPath struct {
	NamespacePath
	Secret secretName `path:"secret"`
}

// Resolve refuses a name out of its pattern.
func (p *SecretPath) Resolve(huma.Context) []error {
	return problems(api.ValidateTenant(string(p.Tenant)), api.ValidateName("namespace", string(p.Namespace)), api.ValidateSecretName(string(p.Secret)))
}

func (p *SecretPath) place() (secrets.Place, string) {
	return secrets.Place{Tenant: string(p.Tenant), Namespace: string(p.Namespace)}, string(p.Secret)
}

// SecretCondition is the precondition of a write.
type SecretCondition struct {
	IfMatch     string `header:"If-Match" doc:"the ETag that the secret must have now"`
	IfNoneMatch string `header:"If-None-Match" doc:"* if the secret must not exist"`
}

// secretBody is what a secret is written with.
type secretBody struct {
	Value string `json:"value" minLength:"1" maxLength:"32768" doc:"UTF-8 text; it is shown to nobody"`
}

// putSecretInput takes the body as it came: what huma says of one that it cannot read
// holds parts of it.
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
	NamespacePath
	PageQuery
}

type rewrapInput struct {
	TenantPath
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the call before"`
}

type secretOutput struct {
	Status int
	ETag   string `header:"ETag"`
	Body   api.Secret
}

type secretPageOutput struct{ Body api.Page[api.Secret] }

type rewrapOutput struct{ Body api.RewrapReport }

func (s *Server) routeSecrets(t typedAPI) {
	tags, schemas := []string{"secrets"}, t.OpenAPI().Components.Schemas
	register(t, huma.Operation{
		OperationID: "put-secret", Method: http.MethodPut, Path: pathSecret, Tags: tags,
		Summary: "Write a secret", DefaultStatus: http.StatusOK, SkipValidateBody: true, // secretValue does, and keeps quiet
		Description: "201 where there was none, else 200 and its next version. The value is sealed and no route shows it again. " +
			"If-Match with the secret's ETag, its version, guards the write; If-None-Match: * only makes new ones.",
		Responses: map[string]*huma.Response{"201": {
			Description: "Created", Content: content(schemas, map[string]any{contentTypeJSON: api.Secret{}}),
		}},
	}, s.putSecret)
	t.OpenAPI().Paths[pathSecret].Put.RequestBody.Content = content(schemas, map[string]any{contentTypeJSON: secretBody{}})
	register(t, huma.Operation{
		OperationID: "list-secrets", Method: http.MethodGet, Path: pathSecrets, Tags: tags,
		Summary: "List a namespace's secrets by name, with versions and dates and without values",
	}, s.listSecrets)
	register(t, huma.Operation{
		OperationID: "get-secret", Method: http.MethodGet, Path: pathSecret, Tags: tags,
		Summary: "Read what is told of a secret: all but its value", Description: "The ETag is its version.",
	}, s.getSecret)
	register(t, huma.Operation{
		OperationID: "delete-secret", Method: http.MethodDelete, Path: pathSecret, Tags: tags,
		Summary: "Delete a secret", Description: "Functions that name it get it no more. If-Match guards it.",
	}, s.deleteSecret)
	register(t, huma.Operation{
		OperationID: "rewrap-secrets", Method: http.MethodPost, Path: pathRewrap, Tags: tags,
		Summary: "Seal anew with the server's first key what an older one sealed", DefaultStatus: http.StatusOK,
		Description: "For the rotation of keys. A call does some of the tenant's secrets and says where to go on, until next_cursor is null. It may be repeated.",
	}, s.rewrapSecrets)
}

func (s *Server) putSecret(ctx context.Context, in *putSecretInput) (*secretOutput, error) {
	place, name := in.place()
	value, err := secretValue(in.ContentType, in.RawBody)
	if err != nil {
		return nil, err
	}
	on, err := s.secretCondition(ctx, &in.SecretPath, &in.SecretCondition)
	if err != nil {
		return nil, err
	}
	made, created, err := s.secrets.Put(ctx, place, name, value, callerOf(ctx).sub, on)
	if err != nil {
		return nil, err
	}
	out := answerSecret(made)
	if noteMade(ctx, made.Name+"@"+strings.Trim(out.ETag, `"`)); created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

// secretValue reads {"value": "…"} strictly. Its errors hold nothing of the body.
func secretValue(contentType string, body []byte) (string, error) {
	if kind, _, err := mime.ParseMediaType(contentType); contentType != "" && (err != nil || kind != contentTypeJSON) {
		return "", api.Errorf(api.CodeMediaType, "the body must be application/json")
	}
	if !utf8.Valid(body) || !json.Valid(body) {
		return "", api.Errorf(api.CodeValidationJSON, `the body cannot be read: it must be {"value": "…"}, JSON in UTF-8`)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return "", api.Errorf(api.CodeValidation, `the body must be an object, {"value": "…"}`)
	}
	raw, given := fields["value"]
	var value *string
	switch {
	case !given:
		return "", api.Errorf(api.CodeValidation, "value is required").WithFields(api.FieldError{Path: "value", Message: "is required"})
	case len(fields) > 1:
		return "", api.Errorf(api.CodeValidation, "the body must have no field but value")
	case json.Unmarshal(raw, &value) != nil || value == nil:
		return "", fieldError("value", "must be a string")
	}
	return *value, api.ValidateSecretValue(*value)
}

// secretCondition reads the precondition of a write. CodePreconditionFailed,
// CodeValidation.
func (s *Server) secretCondition(ctx context.Context, p *SecretPath, c *SecretCondition) (secrets.Condition, error) {
	switch {
	case c.IfNoneMatch != "" && c.IfMatch != "":
		return secrets.Condition{}, fieldError("If-None-Match", "cannot stand beside If-Match")
	case c.IfNoneMatch != "" && strings.TrimSpace(c.IfNoneMatch) != "*":
		return secrets.Condition{}, fieldError("If-None-Match", "must be *")
	}
	version, err := s.matchSecret(ctx, p, c.IfMatch)
	return secrets.Condition{IfMatch: version, IfNew: c.IfNoneMatch != ""}, err
}

// matchSecret turns an If-Match into the version that the secret must have, nil for
// any. CodePreconditionFailed.
func (s *Server) matchSecret(ctx context.Context, p *SecretPath, ifMatch string) (*int64, error) {
	if ifMatch == "" {
		return nil, nil //nolint:nilnil // documented: no precondition
	}
	place, name := p.place()
	found, err := s.secrets.Get(ctx, place, name)
	if err != nil && api.ErrorCode(err) != api.CodeSecretNotFound {
		return nil, err
	}
	if err == nil && namesTag(ifMatch, revisionTag(found.Version)) {
		return &found.Version, nil
	}
	return nil, api.Errorf(api.CodePreconditionFailed, "the secret does not have the ETag that If-Match names")
}

// answerSecret gives what is told of a secret under its ETag, its version.
func answerSecret(secret api.Secret) *secretOutput {
	return &secretOutput{Status: http.StatusOK, ETag: revisionTag(secret.Version), Body: secret}
}

func (s *Server) getSecret(ctx context.Context, in *secretInput) (*secretOutput, error) {
	place, name := in.place()
	found, err := s.secrets.Get(ctx, place, name)
	if err != nil {
		return nil, err
	}
	return answerSecret(found), nil
}

func (s *Server) listSecrets(ctx context.Context, in *listSecretsInput) (*secretPageOutput, error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	list := listScope("secrets", tenant, namespace)
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	items, next, err := s.secrets.List(ctx, secrets.Place{Tenant: tenant, Namespace: namespace}, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return &secretPageOutput{Body: page(items, list.seal(next))}, nil
}

func (s *Server) deleteSecret(ctx context.Context, in *deleteSecretInput) (*struct{}, error) {
	place, name := in.place()
	version, err := s.matchSecret(ctx, &in.SecretPath, in.IfMatch)
	if err != nil {
		return nil, err
	}
	return nil, s.secrets.Delete(ctx, place, name, version)
}

func (s *Server) rewrapSecrets(ctx context.Context, in *rewrapInput) (*rewrapOutput, error) {
	list := listScope("rewrap", string(in.Tenant))
	after, err := list.open(in.Cursor)
	if err != nil {
		return nil, err
	}
	report, next, err := s.secrets.Rewrap(ctx, string(in.Tenant), after)
	if err != nil {
		return nil, err
	}
	report.NextCursor = list.seal(next)
	return &rewrapOutput{Body: report}, nil
}
