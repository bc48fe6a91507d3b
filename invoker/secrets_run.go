package invoker

import (
	"bytes"
	"context"
	"strconv"
	"sync"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
)

// secretsRun is the secrets of one activation, of a version that names some: nil
// otherwise, and then it costs nothing and changes nothing.
type secretsRun struct {
	vault  *vault
	name   versionName
	names  []string
	reader reader

	mu sync.Mutex
	// find finds all that it may have read: a secret that changes while it runs is found
	// in its text as it was, and as it is.
	find *redactor
	last *redactor // the one that find got last
}

// begin resolves the secrets of a version that names some. What fails then is tried again,
// and told, when the function asks for one.
func (v *vault) begin(inv *api.Invocation, res *resolution, rec *api.Activation) *secretsRun {
	names := res.Version.Config.Capabilities.Secrets
	if len(names) == 0 {
		return nil
	}
	name := versionName{inv.Tenant, inv.Namespace, inv.Function, res.Version.Version}
	r := &secretsRun{
		vault: v, name: name, names: names,
		reader: reader{
			tenant: name.tenant, namespace: name.namespace, activation: rec.ActivationID, request: rec.RequestID,
			sub: "fn:" + name.namespace + "/" + name.function + "@" + strconv.FormatInt(name.version, 10),
		},
	}
	ctx, cancel := context.WithTimeout(v.life, secretsTimeout)
	defer cancel()
	now, err := v.hold(ctx, name, names, &r.reader)
	if err != nil {
		now = v.last(name)
	}
	if now != nil {
		_ = r.keep(now) // the first always fits
	}
	return r
}

// keep lets the run find what a generation holds, and lets go of the generation.
// CodeHostSecretUnavailable where that would be too much to hold for one run.
func (r *secretsRun) keep(g *generation) error {
	defer r.vault.release(g)
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.redactor == nil || g.redactor == r.last {
		return nil
	}
	find, ok := g.redactor, true
	if r.find != nil {
		find, ok = r.find.with(g.redactor)
	}
	if !ok {
		return api.Errorf(api.CodeHostSecretUnavailable, "the version's secrets changed too often while it ran")
	}
	r.find, r.last = find, g.redactor
	return nil
}

// get gives a secret's value of now. CodeHostSecretNotFound, CodeHostSecretUnavailable,
// the store's.
func (r *secretsRun) get(ctx context.Context, name string) ([]byte, error) {
	if r == nil {
		return nil, api.Errorf(api.CodeHostSecretUnavailable, "this invocation has no secrets")
	}
	now, err := r.vault.hold(ctx, r.name, r.names, &r.reader)
	if err != nil {
		return nil, err
	}
	var text []byte
	err = error(api.Errorf(api.CodeHostSecretNotFound, "secret %q does not exist in namespace %s", name, r.name.namespace))
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
	r.vault.book.note(&r.reader, readByFunction, name, version, err)
	return text, err
}

// line gives a log line's text without secrets.
func (r *secretsRun) line(text []byte) []byte {
	if r == nil {
		return text
	}
	r.mu.Lock()
	find := r.find
	r.mu.Unlock()
	return find.line(text)
}

// end gives the run's result with an error that holds no secrets. The value is the
// function's own to give.
func (r *secretsRun) end(result sandbox.Result) sandbox.Result {
	if r == nil {
		return result
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	result.Error = r.find.failure(result.Error)
	return result
}
