package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

// A user may name a thing by a part of its id: its beginning or its end, of at least minShortID
// characters. maxIDPages bounds the pages of the latest things that a search reads. A page of
// activations or jobs, which the server searches, covers 2,000 of them.
const (
	minShortID = 4
	maxIDPages = 25

	keyIDPrefix = "key_"
)

// IDKind describes the ids of one kind of thing.
type IDKind struct {
	noun     string // "job"
	nouns    string // "jobs"
	validate func(id string) error
	short    *regexp.Regexp // matches the texts that may be a part of an id
	missing  api.Code       // of the error if no id has the part
	// among returns ids that may begin or end with part; Resolve selects among them.
	among func(ctx context.Context, t *Target, part string) iter.Seq2[string, error]
}

var (
	partOfUUID = regexp.MustCompile(`^[0-9a-f-]{4,35}$`)
	partOfKey  = regexp.MustCompile(`^(` + keyIDPrefix + `)?[0-9A-Z]{4,25}$`)
)

// The kinds of ids that commands take.
var (
	ActivationID = IDKind{"activation", "activations", api.ValidateActivationID, partOfUUID, api.CodeActivationNotFound, activationsWith}
	JobID        = IDKind{"job", "jobs", api.ValidateJobID, partOfUUID, api.CodeJobNotFound, jobsWith}
	BatchID      = IDKind{"batch", "batches", api.ValidateBatchID, partOfUUID, api.CodeBatchNotFound, batchesWith}
	KeyID        = IDKind{"key", "keys", validateKeyID, partOfKey, api.CodeKeyNotFound, keysWith}
)

func validateKeyID(id string) error {
	_, err := api.KeyTimeMS(id)
	return err
}

// Check returns CodeValidationName if text can be neither an id nor a part of one.
func (k IDKind) Check(text string) error {
	err := k.validate(text)
	if err == nil || k.short.MatchString(text) {
		return nil
	}
	var whole *api.Error
	if !errors.As(err, &whole) {
		return err
	}
	return api.Errorf(whole.Code, "%s, or the beginning or the end of the id of one %s, at least %d characters", whole.Message, k.noun, minShortID)
}

// Resolve returns the id that text stands for: text itself, or the only id that begins or ends
// with it. Errors: those of Check, not found, and an error that names two ids with the part.
func (a *App) Resolve(ctx context.Context, t *Target, k IDKind, text string) (id string, err error) {
	if err := k.Check(text); err != nil || k.validate(text) == nil {
		return text, err
	}
	err = a.Working("looking for "+k.noun+" "+text, func() error {
		for found, err := range k.among(ctx, t, text) {
			switch {
			case err != nil:
				return err
			case found == id || !isPart(text, found):
			case id != "":
				return fmt.Errorf("%s is part of more than one id, such as %s and %s: give more of it", text, id, found)
			default:
				id = found
			}
		}
		return nil
	})
	if err == nil && id == "" {
		err = api.Errorf(k.missing, "no id of the latest %s begins or ends with %s", k.nouns, text)
	}
	return id, err
}

// isPart reports whether id begins or ends with part. The beginning of a key's id may be given
// without the letters that all of them begin with.
func isPart(part, id string) bool {
	return strings.HasPrefix(id, part) || strings.HasSuffix(id, part) || strings.HasPrefix(id, keyIDPrefix+part)
}

// latest returns the ids of the items on the first pages of a list.
func latest[T any](ctx context.Context, list func(context.Context, client.PageOptions) (api.Page[T], error), id func(T) string) iter.Seq2[string, error] {
	pages := 0
	bounded := func(ctx context.Context, o client.PageOptions) (api.Page[T], error) {
		page, err := list(ctx, o)
		pages++
		if pages == maxIDPages {
			page.NextCursor = nil
		}
		return page, err
	}
	return func(yield func(string, error) bool) {
		for item, err := range client.All(ctx, bounded, client.PageOptions{Limit: api.MaxPageLimit}) {
			if !yield(id(item), err) {
				return
			}
		}
	}
}

func activationsWith(ctx context.Context, t *Target, part string) iter.Seq2[string, error] {
	return latest(ctx, func(ctx context.Context, o client.PageOptions) (api.Page[api.Activation], error) {
		return t.Tenant.Activations(ctx, client.ActivationFilter{ID: part}, o)
	}, func(a api.Activation) string { return a.ActivationID })
}

// jobsWith searches the queues of the target's namespace, state by state.
func jobsWith(ctx context.Context, t *Target, part string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for queue, err := range client.All(ctx, t.Namespace.Queues, client.PageOptions{}) {
			if err != nil {
				yield("", err)
				return
			}
			for _, state := range api.JobStates() {
				if queue.Depths[state] == 0 {
					continue
				}
				list := func(ctx context.Context, o client.PageOptions) (api.Page[api.Job], error) {
					return t.Namespace.Queue(queue.Queue).Jobs(ctx, client.JobFilter{State: state, ID: part}, o)
				}
				for id, err := range latest(ctx, list, func(j api.Job) string { return j.ID }) {
					if !yield(id, err) || err != nil {
						return
					}
				}
			}
		}
	}
}

func batchesWith(ctx context.Context, t *Target, _ string) iter.Seq2[string, error] {
	return latest(ctx, t.Namespace.Batches, func(b api.Batch) string { return b.ID })
}

func keysWith(ctx context.Context, t *Target, _ string) iter.Seq2[string, error] {
	return latest(ctx, t.Tenant.Keys, func(k api.Key) string { return k.ID })
}
