// Package domain has the records of custom domains, with the names that a domain may have. A
// tenant adds a domain, sets a TXT record in its DNS zone, and has it verified; the domain is
// then the host of a function. The names of the records are those of the OpenAPI document.
package domain

import (
	"strings"

	"github.com/codesous/sous/api"
)

// ChallengeLabel is the label of the TXT record by which a tenant proves that it controls a
// domain: _sous-challenge.shop.example.com.
const ChallengeLabel = "_sous-challenge"

// valuePrefix begins the value of the record, so that its purpose is plain in a DNS zone.
const valuePrefix = "sous-domain-verification="

// The states of a domain.
const (
	Pending  = "pending"  // not served: its record was not found yet, or another tenant has taken it over
	Verified = "verified" // served
)

// Target is the function of a domain, by alias (default: api.DefaultAlias) or version.
type Target struct {
	Namespace string `json:"namespace"`
	Function  string `json:"function"`
	Alias     string `json:"alias,omitempty"`
	Version   int64  `json:"version,omitempty"`
}

// Domain is a custom domain of a tenant.
type Domain struct {
	Domain string `json:"domain" doc:"in lower case, an international name in its ASCII form"`
	Target
	State        string    `json:"state" enum:"pending,verified"`
	Record       DNSRecord `json:"record" doc:"the DNS record that proves the control of the domain"`
	Revision     int64     `json:"revision"` // grows with every change
	CreatedAtMS  int64     `json:"created_at_ms"`
	UpdatedAtMS  int64     `json:"updated_at_ms"`
	VerifiedAtMS int64     `json:"verified_at_ms,omitempty"`
}

// DNSRecord is a record of a DNS zone.
type DNSRecord struct {
	Type  string `json:"type" doc:"TXT"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Challenge returns the record that verifies a domain with a token.
func Challenge(name, token string) DNSRecord {
	return DNSRecord{Type: "TXT", Name: ChallengeLabel + "." + name, Value: valuePrefix + token}
}

// WithDefaults returns t with the default alias if it has neither an alias nor a version.
func (t Target) WithDefaults() Target {
	if t.Alias == "" && t.Version == 0 {
		t.Alias = api.DefaultAlias
	}
	return t
}

// Ref returns the alias or version of the function.
func (t Target) Ref() api.Ref { return api.Ref{Alias: t.Alias, Version: t.Version} }

// Validate returns CodeInvalid or CodeValidationName with the field.
func (t Target) Validate() error {
	if err := api.ValidateName("namespace", t.Namespace); err != nil {
		return err
	}
	if err := api.ValidateName("function", t.Function); err != nil {
		return err
	}
	return t.Ref().Validate()
}

// Reserved lists domains of the server itself. Neither they nor names below them can be custom
// domains.
type Reserved []string

// Covers reports whether a parsed name is reserved.
func (r Reserved) Covers(name string) bool {
	for _, own := range r {
		if own != "" && (name == own || strings.HasSuffix(name, "."+own)) {
			return true
		}
	}
	return false
}
