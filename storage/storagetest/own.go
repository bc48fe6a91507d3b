package storagetest

import (
	"testing"

	"github.com/codesous/sous/storage"
)

// OwnStores returns the kinds of stores, by name. Each function starts a store that no other test
// uses: a test that works on the records of all tenants would change those of others.
func OwnStores() map[string]func(t *testing.T) storage.Config {
	return map[string]func(t *testing.T) storage.Config{
		"embedded": func(t *testing.T) storage.Config {
			t.Helper()
			return storage.Config{Embedded: Embedded(t, t.TempDir())}
		},
		"redis": func(t *testing.T) storage.Config {
			t.Helper()
			return storage.Config{URL: Redis(t).URL}
		},
		"cluster": func(t *testing.T) storage.Config {
			t.Helper()
			return storage.Config{URL: OwnCluster(t)}
		},
	}
}
