package storage

import "strconv"

// keys builds every key of the store; no other file writes one. Names never
// hold a colon or a brace (see api.ValidateName), so no key can be mistaken for
// another, and the tenant's braces are the first in any key.
type keys struct {
	// hashTags wraps tenants in braces, so that a cluster keeps all of a
	// tenant's keys in one slot.
	hashTags bool
}

// Keys that belong to no tenant. They are written by calls of their own, since
// in a cluster they share no slot with a tenant's.
const (
	keyTenants         = "cs:tenants"
	keySweepActivation = "cs:sweep:act"
	channelChanges     = "cs:changes"
	keyKeyTenants      = "cs:keys:tenants"   // neither this nor
	keyBootstrap       = "cs:keys:bootstrap" // this can be a tenant's set: see api.ValidateTenant
)

func (k keys) tenant(t string) string {
	if k.hashTags {
		return "{" + t + "}"
	}
	return t
}

func (k keys) namespaces(t string) string { return "cs:tenant:" + k.tenant(t) + ":namespaces" }

func (k keys) functionIndex(t, ns string) string {
	return "cs:fn:" + k.tenant(t) + ":" + ns + ":index"
}

func (k keys) function(t, ns, fn string) functionKeys {
	return functionKeys("cs:fn:" + k.tenant(t) + ":" + ns + ":" + fn)
}

// functionKeys is the prefix of a function's keys.
type functionKeys string

func (f functionKeys) meta() string           { return string(f) + ":meta" }
func (f functionKeys) versionSeq() string     { return string(f) + ":version_seq" }
func (f functionKeys) draft(id string) string { return string(f) + ":draft:" + id }
func (f functionKeys) versions() string       { return string(f) + ":versions" }
func (f functionKeys) aliases() string        { return string(f) + ":aliases" }
func (f functionKeys) alias(a string) string  { return string(f) + ":alias:" + a }

func (f functionKeys) versionMeta(n int64) string {
	return string(f) + ":ver:" + strconv.FormatInt(n, 10) + ":meta"
}

func (f functionKeys) versionBundle(n int64) string {
	return string(f) + ":ver:" + strconv.FormatInt(n, 10) + ":bundle"
}

func (k keys) activationMeta(t, id string) string {
	return "cs:act:" + k.tenant(t) + ":" + id + ":meta"
}

func (k keys) activationResult(t, id string) string {
	return "cs:act:" + k.tenant(t) + ":" + id + ":result"
}

func (k keys) activationIndex(t, ns, fn string) string {
	return "cs:act:" + k.tenant(t) + ":" + ns + ":" + fn + ":index"
}

func (k keys) logChunk(t, id string, n int) string {
	return "cs:log:" + k.tenant(t) + ":" + id + ":" + strconv.Itoa(n)
}

func (k keys) logChunks(t, id string) string {
	return "cs:log:" + k.tenant(t) + ":" + id + ":chunks"
}

// apiKey is the place of an API key's record: whoever asks for it knows the key
// and not yet whose it is.
func (k keys) apiKey(digest string) string { return "cs:key:" + digest }

// apiKeys is the set of a tenant's API keys; t may be api.AllTenants.
func (k keys) apiKeys(t string) string { return "cs:keys:" + k.tenant(t) }

// audit is a tenant's stream of audit events; t may be api.AllTenants.
func (k keys) audit(t string) string { return "cs:audit:" + k.tenant(t) }

func (k keys) kv(t, ns, key string) string {
	return "cs:kv:" + k.tenant(t) + ":" + ns + ":" + key
}
