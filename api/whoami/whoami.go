// Package whoami has the answer of /v1/whoami: who calls, and which server answered.
package whoami

// The values of Identity.Auth.
const (
	AuthKeys = "keys" // the caller was found by its API key
	AuthOff  = "off"  // authentication is off: every caller is an administrator
)

// Identity describes the caller of a request and the server that answered. It never holds
// the text of a key. An empty Namespace means all namespaces; ExpiresAtMS 0 means never.
type Identity struct {
	Auth        string   `json:"auth" enum:"keys,off"`
	KeyID       string   `json:"key_id,omitempty" doc:"left out if authentication is off"`
	Name        string   `json:"name,omitempty" doc:"the name of the key"`
	Tenant      string   `json:"tenant" doc:"the only tenant that the caller may enter, or * for all"`
	Namespace   string   `json:"namespace,omitempty" doc:"the only namespace that the caller may enter; left out for all"`
	Roles       []string `json:"roles"`
	ExpiresAtMS int64    `json:"expires_at_ms,omitempty" doc:"when the key expires; left out for never"`

	ServerVersion string `json:"server_version"`
	ServerTimeMS  int64  `json:"server_time_ms" doc:"the clock of the replica that answered"`
}
