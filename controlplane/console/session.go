package console

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/whoami"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// sessionLifetime is how long a session lasts, unless its key expires before.
const sessionLifetime = 12 * time.Hour

// maxSignIn bounds the body of a sign-in, in bytes.
const maxSignIn = 4 << 10

// signIn is the body of a sign-in.
type signIn struct {
	Key string `json:"key"`
}

// session is what the page learns of itself and its caller.
type session struct {
	// SignedIn is false if the page must ask for a key; the other fields but Auth are empty then.
	SignedIn bool   `json:"signed_in"`
	Auth     string `json:"auth"` // keys or off
	// Reason says why a session that the browser has is not used.
	Reason   string           `json:"reason,omitempty"`
	Identity *whoami.Identity `json:"identity,omitempty"`
	// Actions are those that the caller may do; cs:job:* stands for all that begin with cs:job:.
	Actions []access.Action `json:"actions,omitempty"`
	Token   string          `json:"token,omitempty"` // for HeaderToken
}

// read answers who is signed in.
func (c *Console) read(w http.ResponseWriter, r *http.Request) error {
	a := arrivalOf(r.Context())
	caller, err := c.auth.Authenticate(r.Context(), http.Header{})
	switch code := api.ErrorCode(err); {
	case code == api.CodeAuthnRequired:
		return c.answer(w, r, &session{})
	case code == api.CodeAuthnInvalid:
		var known *api.Error
		errors.As(err, &known)
		return c.answer(w, r, &session{Reason: known.Message})
	case err != nil:
		return err
	}
	return c.welcome(w, r, caller, a.credential)
}

func (c *Console) answer(w http.ResponseWriter, r *http.Request, s *session) error {
	s.Auth = whoami.AuthKeys
	if c.auth.Mode() == access.Off {
		s.Auth = whoami.AuthOff
	}
	w.Header().Set("Cache-Control", "no-store")
	return rest.WriteJSON(w, r, http.StatusOK, s)
}

// welcome answers with the caller's session.
func (c *Console) welcome(w http.ResponseWriter, r *http.Request, caller *access.Caller, credential *access.Credential) error {
	id := caller.Identity()
	id.ServerVersion, id.ServerTimeMS = c.cfg.Version, c.cfg.Clock().UnixMilli()
	s := &session{SignedIn: true, Identity: &id, Actions: caller.Grants()}
	if c.auth.Mode() == access.Keys {
		s.Token = tokenOf(credential)
	}
	return c.answer(w, r, s)
}

// create signs in: it exchanges a key for a session with a new secret. An earlier session of the
// browser ends, since someone else may have planted it.
func (c *Console) create(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	a := arrivalOf(ctx)
	if a.foreign != nil {
		return a.foreign
	}
	raw, err := rest.ReadBody(w, r, maxSignIn)
	if err != nil {
		return err
	}
	var in signIn
	if err := json.Unmarshal(raw, &in); err != nil || in.Key == "" {
		return api.InvalidField("key", "must be an API key")
	}
	caller, digest, err := c.auth.SignIn(ctx, in.Key)
	if err != nil {
		return err
	}
	if c.auth.Mode() == access.Off {
		return c.welcome(w, r, caller, nil)
	}
	now := c.cfg.Clock()
	ends := now.Add(sessionLifetime)
	if ms := caller.Identity().ExpiresAtMS; ms != 0 && time.UnixMilli(ms).Before(ends) {
		ends = time.UnixMilli(ms)
	}
	credential := &access.Credential{Key: digest}
	_, _ = rand.Read(credential.Secret[:]) // it returns no error
	key, stored := credential.Stored()
	if err := c.sessions.Create(ctx, key, stored, now, ends); err != nil {
		return err
	}
	if a.cookie.Err == nil {
		c.end(ctx, a.cookie)
	}
	value := base64.RawURLEncoding.EncodeToString(append(credential.Key[:], credential.Secret[:]...))
	setCookie(w, a.secure, value, int(ends.Sub(now).Seconds()))
	return c.welcome(w, r, caller, credential)
}

// remove signs out.
func (c *Console) remove(w http.ResponseWriter, r *http.Request) error {
	a := arrivalOf(r.Context())
	if api.ErrorCode(a.credential.Err) == api.CodeAuthzDenied {
		return a.credential.Err
	}
	if a.credential.Err == nil && c.auth.Mode() == access.Keys {
		key, stored := a.credential.Stored()
		if err := c.sessions.Delete(r.Context(), key, stored); err != nil {
			return err
		}
		c.auth.ForgetSession(a.credential)
	}
	setCookie(w, a.secure, "", -1)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// end ends a session that another one replaces. If the store does not answer, the session ends by
// its time.
func (c *Console) end(ctx context.Context, credential *access.Credential) {
	key, stored := credential.Stored()
	if err := c.sessions.Delete(ctx, key, stored); err == nil {
		c.auth.ForgetSession(credential)
	}
}

// setCookie sets the cookie of the session. It has no Path: the browser then takes that of the
// request without its last segment, which is apiPrefix behind whatever prefix a proxy adds.
func setCookie(w http.ResponseWriter, secure bool, value string, maxAge int) {
	name := cookiePlain
	if secure {
		name = cookieSecure
	}
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure})
}
