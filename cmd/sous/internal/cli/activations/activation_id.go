package activations

import (
	"context"
	"fmt"
	"regexp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// partOfID matches a part of an id that is long enough to search for.
var partOfID = regexp.MustCompile(`^[0-9a-f-]{4,35}$`)

// maxIDPages bounds the pages of the tenant's latest activations that a search for a part of
// an id reads; a page covers 2,000 of them.
const maxIDPages = 25

// activationTarget returns the target of a command about an activation, and its id. text is
// the id, or its beginning or end if that is unique among the tenant's latest activations.
// Errors: CodeActivationNotFound, CodeValidationName for text that can be no id.
func (a commands) activationTarget(ctx context.Context, text string) (t *command.Target, id string, err error) {
	malformed := api.ValidateActivationID(text)
	if malformed != nil && !partOfID.MatchString(text) {
		return nil, "", malformed
	}
	t, err = a.Target()
	if err != nil || malformed == nil {
		return t, text, err
	}
	err = a.Working("looking for activation "+text, func() (err error) {
		id, err = completeID(ctx, t, text)
		return err
	})
	return t, id, err
}

// completeID returns the id of the one activation whose id begins or ends with part.
func completeID(ctx context.Context, t *command.Target, part string) (string, error) {
	found := ""
	page := client.PageOptions{}
	for range maxIDPages {
		list, err := t.Tenant.Activations(ctx, client.ActivationFilter{ID: part}, page)
		if err != nil {
			return "", err
		}
		for _, act := range list.Items {
			if found != "" {
				return "", fmt.Errorf("%s is part of more than one id, such as %s and %s: give more of it", part, found, act.ActivationID)
			}
			found = act.ActivationID
		}
		if list.NextCursor == nil {
			break
		}
		page.Cursor = *list.NextCursor
	}
	if found == "" {
		return "", api.Errorf(api.CodeActivationNotFound, "no id of the latest activations begins or ends with %s", part)
	}
	return found, nil
}
