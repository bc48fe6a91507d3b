package manifest

import "github.com/codesous/sous/api"

// patternRule states in words a pattern of schema.json, "" for one that it does not know.
func patternRule(pattern string) string {
	switch pattern {
	case "^" + api.NamePattern + "$":
		return api.NameRule
	case "^" + api.AliasPattern + "$":
		return api.AliasRule
	case "^" + api.SecretPattern + "$":
		return api.SecretRule
	case "^" + api.DocumentNamespacePattern + "$":
		return api.DocumentNamespaceRule
	case `^[A-Za-z0-9][A-Za-z0-9._-]*$`:
		return "must have only A to Z, a to z, 0 to 9, ., _ and -, and begin with a letter or a digit"
	case `^[A-Za-z_$][A-Za-z0-9_$]{0,63}$`:
		return "must be the name of an export, of at most 64 characters: A to Z, a to z, 0 to 9, _ and $"
	case "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$":
		return "must be the name of a header or a method of HTTP, without blanks, or *"
	case `^(\*|[a-z][a-z0-9_-]{0,63})$`:
		return "must be *, or the name of a provider, of at most 64 characters: a to z, 0 to 9, _ and -, beginning with a letter"
	case `^(\*|[a-z][a-z0-9+.-]*://[^/?#\s,]+)$`:
		return "must be *, or an origin such as https://example.com, without a path"
	case `^(\*|(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:([0-9]{1,5}|\*))?$`:
		return "must be *, a host such as api.example.com, *.example.com or [::1], or one of these with a port, such as example.com:8443"
	}
	return ""
}
