package controlplane

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
)

// RoutesWithRules are the routes that somebody may use, as rules has them.
func RoutesWithRules() []string { return slices.Sorted(maps.Keys(rules)) }

// Parts of the hand-written JSON.
var AppendFetched = appendFetched

// Routes are what the router answers, as "METHOD pattern".
func (s *Server) Routes() ([]string, error) {
	var routes []string
	err := chi.Walk(s.router.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes = append(routes, method+" "+route)
		return nil
	})
	slices.Sort(routes)
	return routes, err
}

// SetPatience is how long s waits for those who do not read.
func (s *Server) SetPatience(d time.Duration) { s.patience = d }

// JobReaders read the bodies of an enqueue and an ack.
func JobReaders() (enqueue, ack func([]byte) error) {
	document := newAPI(chi.NewRouter(), "test")
	jobs := newStrictDecoder[enqueueBody](document, map[string]any{contentTypeJSON: enqueueBody{}})
	acks := newStrictDecoder[ackBody](document, map[string]any{contentTypeJSON: ackBody{}})
	return func(b []byte) error {
			_, err := jobs.decode(b)
			return err
		}, func(b []byte) error {
			_, err := acks.decode(b)
			return err
		}
}
