// Package compiled keeps the scripts that sandboxes compiled from bundles.
package compiled

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/codesous/sous/storage"
)

// scriptTTL is how long a compiled script is kept. A replica that misses it compiles
// the bundle again.
const scriptTTL = 30 * 24 * time.Hour

// Scripts keeps the scripts that sandbox children compiled from bundles, so that a
// replica compiles nothing that another one, or an earlier process of its own, has compiled.
// It is a cache: a script can be made again at any time. The value is the SHA-256 of the
// script and then the script:
//
//	cs:script:t_acme01:5a0f…   32 bytes of digest, then "(function(__cs_handler…"
type Scripts struct {
	s        *storage.Store
	compiler string
}

// New returns the scripts in s that the given compiler made. compiler names
// its build: scripts of different builds have different keys.
func New(s *storage.Store, compiler string) *Scripts {
	return &Scripts{s, compiler}
}

// Load returns the script that was saved for a bundle's digest, entry and handler, nil if
// there is none or its text is damaged. Errors: CodeStoreUnavailable.
func (c *Scripts) Load(ctx context.Context, tenant, digest, entry, handler string) ([]byte, error) {
	stored, err := storage.Optional(c.s.Client().Get(ctx, c.key(tenant, digest, entry, handler)))
	if err != nil {
		return nil, storage.Failure(ctx, "read a compiled script", err)
	}
	if len(stored) < sha256.Size {
		return nil, nil
	}
	script := []byte(stored[sha256.Size:])
	sum := sha256.Sum256(script)
	if subtle.ConstantTimeCompare(sum[:], []byte(stored[:sha256.Size])) == 0 {
		return nil, nil
	}
	return script, nil
}

// Save stores a script for scriptTTL. Errors: CodeStoreUnavailable.
func (c *Scripts) Save(ctx context.Context, tenant, digest, entry, handler string, script []byte) error {
	sum := sha256.Sum256(script)
	value := append(sum[:], script...)
	err := c.s.Client().Set(ctx, c.key(tenant, digest, entry, handler), value, scriptTTL).Err()
	return storage.Failure(ctx, "save a compiled script", err)
}

// key contains no name of the bundle's author but the tenant: entries and handlers may hold
// any character.
func (c *Scripts) key(tenant, digest, entry, handler string) string {
	h := sha256.New()
	for _, part := range []string{c.compiler, digest, entry, handler} {
		h.Write(fmt.Appendf(nil, "%d:%s", len(part), part))
	}
	return c.s.Keys().CompiledScript(tenant, hex.EncodeToString(h.Sum(nil)))
}
