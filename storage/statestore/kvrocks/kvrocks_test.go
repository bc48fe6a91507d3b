package kvrocks_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/statestore/kvrocks"
	"github.com/codesous/sous/storage/statestore/statestoretest"
	"github.com/codesous/sous/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// indexes returns one set to each root of the suite, by n.
func indexes(except statestore.Exception) []kvrocks.Index {
	return []kvrocks.Index{{Prefix: "gbe:state:{", Key: indexOf, Field: "n", Except: except}}
}

// indexOf is the set of the records below the root that text names.
func indexOf(text string) string {
	root, _, ended := strings.Cut(strings.TrimPrefix(text, "gbe:state:{"), "}")
	if !ended {
		return ""
	}
	return "gbe:idx:{" + root + "}:by_n"
}

// TestConformance runs the suite without an index and with either of two.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, indexes := range map[string][]kvrocks.Index{
		"no index":          nil,
		"index":             indexes(statestore.Exception{}),
		"index of the open": indexes(statestoretest.HistoryException()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
				statestoretest.Run(t, statestoretest.Config{
					Open:     func(*testing.T) statestore.Store { return s.States(indexes...) },
					TooLarge: kvrocks.MaxBytes,
				})
			})
		})
	}
}
