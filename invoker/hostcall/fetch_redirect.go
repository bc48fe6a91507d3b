package hostcall

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// deniedError carries a capability refusal out of the HTTP client.
type deniedError struct{ declare string }

func (e *deniedError) Error() string { return "redirect refused" }

// redirectPolicy returns the client's check of each redirect, for the modes of fetch:
// manual answers with the redirect itself, error fails, and follow (any other) checks the
// next host as the first one was checked. It sets *redirected once a redirect is followed.
func redirectPolicy(s *Scope, mode string, redirected *bool) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		switch {
		case mode == "manual":
			return http.ErrUseLastResponse
		case mode == "error":
			return errors.New("the server redirects and redirect is \"error\"")
		case len(via) >= maxFetchRedirects:
			return fmt.Errorf("more than %d redirects", maxFetchRedirects)
		case next.URL.Scheme != "http" && next.URL.Scheme != "https":
			return fmt.Errorf("redirect to scheme %q", next.URL.Scheme)
		}
		if declare := permitHost(s, next.URL); declare != "" {
			return &deniedError{declare: declare}
		}
		if !sameOrigin(via, next.URL) {
			for _, name := range credentials {
				next.Header.Del(name)
			}
		}
		if err := keepMethod(via, next); err != nil {
			return err
		}
		// http.Client would add the previous URL.
		next.Header.Del("Referer")
		if own := via[0].Header.Values("Referer"); len(own) > 0 {
			next.Header["Referer"] = own
		}
		*redirected = true
		return nil
	}
}

// keepMethod sets the method and the body of a request that follows a redirect to those before,
// where the fetch standard keeps them (HTTP-redirect fetch): http.Client makes a GET of every
// method but HEAD after 301, 302 and 303, and then sends no body again. Errors: those of reading
// the body again.
func keepMethod(via []*http.Request, next *http.Request) error {
	before := via[len(via)-1]
	switch next.Response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound:
		if before.Method == http.MethodPost {
			return nil // a GET
		}
	case http.StatusSeeOther:
		return nil // a GET, or a HEAD
	}
	next.Method = before.Method
	if before.GetBody == nil || next.Body != nil {
		return nil
	}
	for name, values := range before.Header {
		if strings.HasPrefix(name, "Content-") {
			next.Header[name] = values
		}
	}
	body, err := before.GetBody()
	next.Body, next.GetBody, next.ContentLength = body, before.GetBody, before.ContentLength
	return err
}

// credentials are sent only to the origin that the function named. http.Client would send
// them to its subdomains and other ports too, and over http after https.
var credentials = []string{"Authorization", "Cookie", "Proxy-Authorization", "Www-Authenticate"}

// sameOrigin reports whether a chain of requests and the next one stay at the origin of
// the first.
func sameOrigin(via []*http.Request, next *url.URL) bool {
	first := via[0].URL
	for _, req := range via[1:] {
		if req.URL.Scheme != first.Scheme || !strings.EqualFold(req.URL.Host, first.Host) {
			return false
		}
	}
	return next.Scheme == first.Scheme && strings.EqualFold(next.Host, first.Host)
}
