package api

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The patterns of names in the document storage, and rules that state them in words. They allow
// no colon and no slash.
const (
	InstallPattern           = `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`
	DocumentNamespacePattern = `[a-z0-9][a-z0-9_-]{0,63}`

	DocumentNamespaceRule = "must have 1 to 64 characters: a to z, 0 to 9, _ and -, and begin with a letter or a digit"
	idCharacters          = "characters: A to Z, a to z, 0 to 9, ., _ and -, and begin with a letter or a digit"
	installRule           = "must have 1 to 64 " + idCharacters
)

// Bounds of registered installs.
const (
	MaxInstallDescription = 1024 // characters
	MaxInstallFunctions   = 100
)

// AllFunctions stands for every function of a namespace in Install.Functions.
const AllFunctions = "*"

const functionInstall = "fn."

// DocumentFieldError returns CodeDocumentInvalid for the field at path.
func DocumentFieldError(path, why string) *Error {
	return Errorf(CodeDocumentInvalid, "%s: %s", path, why).WithFields(FieldError{Path: path, Message: why})
}

// ValidateInstall returns CodeDocumentInvalid unless s matches InstallPattern. An s that
// begins with "fn." must be the install of a function.
func ValidateInstall(s string) error {
	if strings.HasPrefix(s, functionInstall) {
		if _, _, ok := InstallOf(s); !ok {
			return DocumentFieldError("install", "begins with fn. and is not fn.<namespace>.<function>")
		}
		return nil
	}
	if !isInstall(s) {
		return DocumentFieldError("install", installRule)
	}
	return nil
}

func isInstall(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || strings.IndexByte("._-", c) < 0) {
			return false
		}
	}
	return true
}

// InstallOf returns the function that has this install; ok is false for other installs.
func InstallOf(install string) (namespace, function string, ok bool) {
	rest, own := strings.CutPrefix(install, functionInstall)
	namespace, function, parted := strings.Cut(rest, ".")
	ok = own && parted && isName(namespace, 63) && isName(function, 63)
	if !ok {
		return "", "", false
	}
	return namespace, function, true
}

// ValidateDocumentNamespace returns CodeDocumentInvalid unless s matches
// DocumentNamespacePattern.
func ValidateDocumentNamespace(s string) error {
	if s == "" || s[0] == '_' || s[0] == '-' || !isTail(s, 1, 64, "_-") {
		return DocumentFieldError("namespace", DocumentNamespaceRule)
	}
	return nil
}

// ValidateDocumentKey returns CodeDocumentInvalid unless s has 1 to
// MaxDocumentKeyCharacters, none of them a slash or a control character.
func ValidateDocumentKey(s string) error {
	if s == "" {
		return DocumentFieldError("key", "is required")
	}
	return validateKeyText("key", s)
}

// ValidateDocumentPrefix returns CodeDocumentInvalid if no key can begin with s.
func ValidateDocumentPrefix(s string) error { return validateKeyText("keyPrefix", s) }

func validateKeyText(path, s string) error {
	switch {
	case !utf8.ValidString(s):
		return DocumentFieldError(path, "is not UTF-8")
	case utf8.RuneCountInString(s) > MaxDocumentKeyCharacters:
		return DocumentFieldError(path, fmt.Sprintf("exceeds %d characters", MaxDocumentKeyCharacters))
	case strings.Contains(s, "/"):
		return DocumentFieldError(path, "holds a slash")
	case strings.ContainsFunc(s, unicode.IsControl):
		return DocumentFieldError(path, "holds a control character")
	}
	return nil
}

// Validate returns CodeDocumentInvalid for an install that cannot be registered.
func (i *Install) Validate() error {
	if err := ValidateInstall(i.Install); err != nil {
		return err
	}
	if strings.HasPrefix(i.Install, functionInstall) {
		return DocumentFieldError("install", "is a function's own: it needs no registration")
	}
	if utf8.RuneCountInString(i.Description) > MaxInstallDescription || strings.ContainsFunc(i.Description, unicode.IsControl) {
		return DocumentFieldError("description", fmt.Sprintf("must be at most %d characters of one line", MaxInstallDescription))
	}
	if len(i.Functions) > MaxInstallFunctions {
		return DocumentFieldError("functions", fmt.Sprintf("must be at most %d", MaxInstallFunctions))
	}
	for n, function := range i.Functions {
		namespace, name, _ := strings.Cut(function, "/")
		if !isName(namespace, 63) || name != AllFunctions && !isName(name, 63) {
			return DocumentFieldError(fmt.Sprintf("functions[%d]", n), "must be <namespace>/<function> or <namespace>/*")
		}
	}
	return nil
}

// Allows reports whether a function may use the install.
func (i *Install) Allows(namespace, function string) bool {
	for _, listed := range i.Functions {
		if listed == namespace+"/"+function || listed == namespace+"/"+AllFunctions {
			return true
		}
	}
	return false
}
