package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// The functions of all tenants share one browser origin below Prefix, with each other and with
// the API. This file keeps what one of them answers from reaching the others:
//
//	sandboxPolicy     its pages have an opaque origin: no storage, no access to other answers
//	refusedShared     it changes no setting that a browser keeps for the whole origin
//	ownCookie         its cookies are sent to it alone
//	refuseWorker      it registers no service worker, which would see the requests of the others
//
// A function that is called by a host of its own has an origin of its own; see hosts.go.

// sandboxPolicy is the policy of every answer below Prefix. Browsers enforce each policy of an
// answer, so one that the function sets beside it cannot weaken it. Without allow-same-origin, the
// origin of a page is opaque. A popup may leave the sandbox: it is a page of another site, or an
// answer with this policy.
const sandboxPolicy = "sandbox allow-scripts allow-forms allow-popups allow-popups-to-escape-sandbox " +
	"allow-downloads allow-modals allow-pointer-lock allow-top-navigation-by-user-activation"

const headerPolicy = "Content-Security-Policy"

// headerRefused names the headers that a function set and that were left out of the answer.
const headerRefused = "X-Cs-Refused-Headers"

// refusedAlways lists what no function may set: the connection is the platform's, and a proxy in
// front of it may serve files of its own for the X- headers.
var refusedAlways = map[string]bool{
	"Alt-Svc": true, "Proxy-Authenticate": true, "Public-Key-Pins": true, "Public-Key-Pins-Report-Only": true, "Set-Cookie2": true,
	"X-Accel-Redirect": true, "X-Lighttpd-Send-File": true, "X-Reproxy-Url": true, "X-Sendfile": true,
}

// refusedShared lists what browsers apply to the whole origin, or keep for it.
var refusedShared = map[string]bool{
	"Accept-Ch": true, "Activate-Storage-Access": true, "Clear-Site-Data": true, "Critical-Ch": true, "Expect-Ct": true, "Nel": true,
	"Origin-Agent-Cluster": true, "Report-To": true, "Reporting-Endpoints": true, "Sec-Session-Registration": true,
	"Secure-Session-Registration": true, "Service-Worker-Allowed": true, "Set-Login": true, "Strict-Transport-Security": true,
	"Use-As-Dictionary": true,
}

// refuses reports whether a function that is called as t may not set a header.
func (t *target) refuses(name string, values []string) bool {
	switch {
	case refusedAlways[name]:
		return true
	case !t.shared:
		return false
	case name == "Www-Authenticate":
		return slices.ContainsFunc(values, remembered)
	}
	return refusedShared[name]
}

// remembered reports whether a browser may answer a challenge by itself, with the password that
// it keeps for the origin and the realm: that of another function.
func remembered(challenge string) bool {
	lower := strings.ToLower(challenge)
	for _, scheme := range []string{"basic", "digest", "negotiate", "ntlm", "hoba", "mutual"} {
		if strings.Contains(lower, scheme) {
			return true
		}
	}
	return false
}

// confine removes what the function may not set from the headers of its answer, and names it in
// headerRefused. What it adds to a cookie is bounded by the names of the function.
func (t *target) confine(h http.Header) {
	var refused []string
	for name, values := range h {
		if t.refuses(name, values) {
			delete(h, name)
			refused = append(refused, name)
		}
	}
	if set := h["Set-Cookie"]; len(set) > 0 {
		var kept []string
		for _, line := range set {
			if own, ok := t.ownCookie(line); ok {
				kept = append(kept, own)
			}
		}
		if len(kept) < len(set) {
			refused = append(refused, "Set-Cookie")
		}
		h["Set-Cookie"] = kept
	}
	if len(refused) > 0 {
		slices.Sort(refused)
		h[headerRefused] = []string{strings.Join(refused, ", ")}
	}
	if t.shared {
		h[headerPolicy] = append(slices.Clone(h[headerPolicy]), sandboxPolicy)
	}
}

// root is the path that all URLs of the function on the shared origin begin with.
func (t *target) root() string {
	return Prefix + t.tenant + "/" + t.namespace + "/" + t.function
}

// cookieMark begins the names of the function's cookies on the shared origin. It distinguishes them
// from those of other functions, of a proxy and of the platform, whatever path they were set for.
func (t *target) cookieMark() string {
	sum := sha256.Sum256([]byte(t.root()))
	return "fn-" + hex.EncodeToString(sum[:10]) + "-"
}

// The prefixes of names with which browsers enforce attributes of a cookie, except those that
// require the path /, which a function on the shared origin does not have.
var keptPrefixes = []string{"__Secure-", "__Http-"}

const hostPrefix = "__Host-"

// ownCookie returns a Set-Cookie of the function without Domain, which would send the cookie to
// other hosts. On the shared origin the cookie also gets the function's mark and a path of the
// function, its root unless it names one. Attributes that browsers do not know today are left out
// there. ok is false for a cookie without a name and for the prefix __Host-.
func (t *target) ownCookie(line string) (own string, ok bool) {
	parts := strings.Split(line, ";")
	name, value, named := strings.Cut(parts[0], "=")
	name = strings.TrimSpace(name)
	if t.shared {
		if !named || !httpguts.ValidHeaderFieldName(name) || hasPrefixFold(name, hostPrefix) {
			return "", false
		}
		front := ""
		for _, prefix := range keptPrefixes {
			if hasPrefixFold(name, prefix) {
				front = name[:len(prefix)]
			}
		}
		parts[0] = front + t.cookieMark() + name[len(front):] + "=" + value
	}
	kept, path := parts[:1], t.root()
	for _, attribute := range parts[1:] {
		key, value, _ := strings.Cut(attribute, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		switch {
		case key == "domain":
		case !t.shared:
			kept = append(kept, attribute)
		case key == "path":
			if within := strings.TrimSpace(value); strings.HasPrefix(within, t.root()+"/") {
				path = within
			}
		case slices.Contains(knownAttributes, key):
			kept = append(kept, attribute)
		}
	}
	if t.shared {
		kept = append(kept, " Path="+path)
	}
	return strings.Join(kept, ";"), true
}

var knownAttributes = []string{"expires", "max-age", "secure", "httponly", "samesite", "partitioned", "priority"}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// reserved reports whether a cookie would appear to have attributes that no browser enforced,
// since its prefix stands behind the mark. Only another host of the domain can set such a cookie.
func reserved(cookie string) bool {
	return hasPrefixFold(cookie, hostPrefix) || slices.ContainsFunc(keptPrefixes, func(prefix string) bool { return hasPrefixFold(cookie, prefix) })
}

// cookies returns the cookies of a request that the function sees: on the shared origin those with
// its mark, without it, else all.
func (t *target) cookies(headers []string) []string {
	if len(headers) == 0 {
		return nil
	}
	all := cookies(headers)
	if !t.shared {
		return all
	}
	mark := t.cookieMark()
	own := all[:0]
	for _, cookie := range all {
		front := ""
		for _, prefix := range keptPrefixes {
			if hasPrefixFold(cookie, prefix) {
				front = cookie[:len(prefix)]
			}
		}
		rest, ok := strings.CutPrefix(cookie[len(front):], mark)
		if ok && (front != "" || !reserved(rest)) {
			own = append(own, front+rest)
		}
	}
	return own
}
