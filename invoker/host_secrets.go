package invoker

import (
	"context"
	"errors"
	"slices"

	"github.com/codesous/sous/api"
)

// secretHost serves cs.secrets. The values are the run's: it knows no other.
type secretHost struct{}

type secretName struct {
	Name string `json:"name"`
}

// permit lets those names through that the version declares, letter for letter.
func (secretHost) permit(s *scope, a secretName) string {
	if slices.Contains(s.capabilities.Secrets, a.Name) {
		return ""
	}
	return `{"secrets": [` + quoted(cutName(a.Name)) + `]}`
}

func (secretHost) get(ctx context.Context, s *scope, a secretName, _ []byte) (any, []byte, error) {
	value, err := s.secrets.get(ctx, a.Name)
	return struct{}{}, value, err
}

// messageOf is what an error of ours says to people.
func messageOf(err error) string {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded.Message
	}
	return "the server's log says why"
}
