package vault

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/codesous/sous/api"
)

// Run holds the secrets of one activation: Get reads them, Line and Failure remove them
// from its logs and its error. It is safe for concurrent use. A nil Run is that of a
// version that names no secrets: Line and Failure change nothing, and Get must not be
// called.
//
// A run does not hold a generation between calls: it copies the value that it returns, and
// keeps only the redactor.
type Run struct {
	vault  *Vault
	name   Version
	names  []string
	reader reader

	mu sync.Mutex
	// find finds all values that the run may have read: those of a secret that changes
	// while it runs, before and after the change.
	find    *redactor
	last    *redactor // the one that was added to find last
	changes int       // how often find has grown
}

// Seen holds the secrets that the activations of one sandbox may have read, so that logs
// and errors of later ones are searched for values that the state of the modules keeps.
type Seen struct{ find, last *redactor }

// End returns the secrets that the run may have read, for the next run in the same sandbox.
// changed reports that a secret changed since the first of these runs began: a sandbox
// whose modules may keep the old value should serve no other activation.
func (r *Run) End() (seen *Seen, changed bool) {
	if r == nil {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Seen{r.find, r.last}, r.find != r.last
}

// Begin resolves the secrets that a version names, for one activation and the request that
// it serves. It returns nil if names is empty. It waits for the store for secretsTimeout at
// most, and only if the held secrets are out of date. A secret that cannot be read is tried
// again when the function asks for it, and only then an error: a function that does not ask
// for it runs. Its earlier values are found in text all the same. seen is the result of End
// of the last run in the same sandbox, nil for its first run and where nothing persists
// between activations.
func (v *Vault) Begin(name Version, names []string, activation, request string, seen *Seen) *Run {
	if len(names) == 0 {
		return nil
	}
	r := &Run{
		vault: v, name: name, names: names,
		reader: reader{
			tenant: name.Tenant, namespace: name.Namespace, activation: activation, request: request,
			sub: "fn:" + name.Namespace + "/" + name.Function + "@" + strconv.FormatInt(name.Version, 10),
		},
	}
	if seen != nil {
		r.find, r.last = seen.find, seen.last
	}
	ctx, cancel := context.WithTimeout(v.life, secretsTimeout)
	defer cancel()
	now, err := v.hold(ctx, name, names, &r.reader)
	if err != nil {
		now = v.last(name)
	}
	if now != nil {
		// The first always fits. Where one after others does not, Get refuses its values.
		_ = r.keep(now)
	}
	return r
}

// Provider resolves the secret of a provider of models for an activation, whose function does not see it.
// It is read, kept and noted in the audit as a secret of a version, under the name of the provider.
func (v *Vault) Provider(tenant, namespace, provider, secret, activation, request string) *Run {
	sub := "provider:" + provider
	return &Run{
		vault: v, name: Version{Tenant: tenant, Namespace: namespace, Function: sub + "/" + secret}, names: []string{secret},
		reader: reader{tenant: tenant, namespace: namespace, activation: activation, request: request, sub: sub},
	}
}

// keep adds a generation's values to those that the run finds, and releases the generation.
// Errors: CodeHostSecretUnavailable if one run would hold more than maxRunBytes, or has seen
// maxRunChanges; the value must not reach the function in that case.
func (r *Run) keep(g *generation) error {
	defer r.vault.release(g)
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.redactor == nil || g.redactor.same(r.last) {
		return nil
	}
	find, ok := g.redactor, true
	if r.find != nil {
		r.changes++
		ok = r.changes <= maxRunChanges
	}
	if r.find != nil && ok {
		find, ok = r.find.with(g.redactor)
	}
	if !ok {
		return api.Errorf(api.CodeHostSecretUnavailable, "the version's secrets changed too often while it ran")
	}
	r.find, r.last = find, g.redactor
	return nil
}

// Get returns a secret's current value, a copy that the caller may keep. Each call is noted
// in the audit, also a failed one, except when the store did not answer. Errors:
// CodeHostSecretNotFound, CodeHostSecretUnavailable, the store's.
func (r *Run) Get(ctx context.Context, name string) ([]byte, error) {
	now, err := r.vault.hold(ctx, r.name, r.names, &r.reader)
	if err != nil {
		return nil, err
	}
	var text []byte
	err = error(api.Errorf(api.CodeHostSecretNotFound, "secret %q does not exist in namespace %s", name, r.name.Namespace))
	version := int64(0)
	for i := range now.values {
		value := &now.values[i]
		if value.Name != name {
			continue
		}
		version = value.Version
		switch api.ErrorCode(value.Err) {
		case "":
			text, err = bytes.Clone(value.Text), nil
		case api.CodeSecretNotFound:
		case api.CodeSecretKeyMissing:
			err = api.Errorf(api.CodeHostSecretUnavailable, "secrets cannot be opened here: the server has no key file (--secrets-key-file)")
		default:
			err = api.Errorf(api.CodeHostSecretUnavailable, "secret %q cannot be opened: %s", name, messageOf(value.Err))
		}
	}
	if full := r.keep(now); full != nil { // before the function can have the value
		clear(text)
		text, err = nil, full
	}
	r.vault.audit.note(&r.reader, readByFunction, name, version, err)
	return text, err
}

// Line returns a log line's text without secrets; text itself if it holds none. searched is
// false if the search would have taken too long: clean then stands for all of text. pause, which
// may be nil, is called from time to time in a long search.
func (r *Run) Line(text []byte, pause func()) (clean []byte, searched bool) {
	if r == nil {
		return text, true
	}
	return r.finder().line(text, pause)
}

// Verdicts removes secrets from the reasons of verdicts, in place.
func (r *Run) Verdicts(verdicts []api.MessageVerdict, pause func()) {
	for i := range verdicts {
		reason, _ := r.Line([]byte(verdicts[i].Reason), pause)
		verdicts[i].Reason = string(reason)
	}
}

// Failure returns the activation's error without secrets, a copy if there is something to
// find. e may be nil.
func (r *Run) Failure(e *api.ActivationError, pause func()) *api.ActivationError {
	if r == nil {
		return e
	}
	return r.finder().failure(e, pause)
}

// finder returns the redactor of all values that the run may have read so far.
func (r *Run) finder() *redactor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find
}

// messageOf returns the part of an error that people may read.
func messageOf(err error) string {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded.Message
	}
	return "the server's log says why"
}
