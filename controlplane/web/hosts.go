package web

import (
	"net"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/rest"
)

// hostSeparator separates the names in a label of Config.FunctionDomain.
const hostSeparator = "--"

// hostRoot returns the path below Prefix as which requests to a Host are served. claimed reports
// whether the host belongs to functions. root is "" for a claimed host that names no function, such
// as one with an empty label. Hosts below Config.FunctionDomain name their function (labelRoot); a
// custom domain is looked up in the memory of this replica.
func (a *API) hostRoot(host string) (root string, claimed bool) {
	custom := a.cfg.Domains != nil && !a.cfg.Domains.Empty()
	if a.cfg.FunctionDomain == "" && !custom {
		return "", false
	}
	name := hostName(host)
	if strings.Contains("."+name+".", "..") && name != "" {
		return "", true
	}
	if a.cfg.FunctionDomain != "" {
		if label, ok := strings.CutSuffix(name, "."+a.cfg.FunctionDomain); ok {
			return labelRoot(label), true
		}
	}
	if !custom {
		return "", false
	}
	found := a.cfg.Domains.Of(name)
	switch {
	case found == nil:
		return "", false
	case found.Function == "":
		return "", true
	}
	return Prefix + found.Tenant + "/" + found.Namespace + "/" + found.Function + "/" + found.Ref().String(), true
}

// labelRoot returns the path below Prefix that the label of a host stands for, as in
//
//	hello--default--t-acme01.apps.example.com        /v1/web/t_acme01/default/hello/prod
//	beta--hello--default--t-acme01.apps.example.com  /v1/web/t_acme01/default/hello/beta
//
// It is "" for a label that names no function. The tenant may be written t_acme01, too. Functions
// have no host if one of the names
//
//   - contains --, or ends with -: the names of the label could not be separated,
//   - makes the label begin with xn--, which browsers decode,
//   - makes the label longer than 63 bytes, which the DNS does not allow.
func labelRoot(label string) string {
	parts := strings.Split(label, hostSeparator)
	if len(parts) == 3 {
		parts = append([]string{api.DefaultAlias}, parts...)
	}
	if len(parts) != 4 || len(label) > maxLabel || strings.HasPrefix(label, "xn--") {
		return ""
	}
	for _, part := range parts {
		if strings.HasPrefix(part, "-") || strings.HasSuffix(part, "-") {
			return ""
		}
	}
	alias, function, namespace, tenant := parts[0], parts[1], parts[2], parts[3]
	if rest, ok := strings.CutPrefix(tenant, "t-"); ok {
		tenant = "t_" + rest
	}
	if _, err := api.ParseRef(alias); err != nil || rest.ValidateFunctionPath(tenant, namespace, function) != nil {
		return ""
	}
	return Prefix + tenant + "/" + namespace + "/" + function + "/" + alias
}

// maxLabel is the most bytes between two dots of a name in the DNS.
const maxLabel = 63

// hostName returns the name in a Host header: in lower case, without port and final dot.
func hostName(host string) string {
	if strings.IndexByte(host, ':') >= 0 {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// target returns the function that a request names, by its host or below Prefix. Errors:
// CodeRouteNotFound, CodeValidationName.
func (a *API) target(host, rawPath string) (target, error) {
	root, claimed := a.hostRoot(host)
	if !claimed {
		t, err := parsePath(rawPath)
		t.shared = !a.cfg.Unconfined
		return t, err
	}
	if root == "" && a.cfg.FunctionDomain == "" {
		return target{}, api.Errorf(api.CodeRouteNotFound, "no function has this host")
	}
	if root == "" {
		return target{}, api.Errorf(api.CodeRouteNotFound, "no function has this host; the host of a function is [alias--]function--namespace--tenant.%s", a.cfg.FunctionDomain)
	}
	if !strings.HasPrefix(rawPath, "/") {
		return target{}, api.Errorf(api.CodeRouteNotFound, "the path of a request must begin with a slash")
	}
	return parsePath(root + rawPath)
}
