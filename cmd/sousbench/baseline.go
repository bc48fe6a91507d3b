package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"
)

// baselineArg makes this binary serve as the comparison: the least that a
// durable HTTP service can do, a chi handler that writes one key a request.
const baselineArg = "baseline"

// serveBaseline serves on a free port, which it prints, over the store at the URL store. A
// request writes as much as an activation at least does: one key with an expiry of 7 days.
func serveBaseline(store string) error {
	at, err := url.Parse(store)
	if err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: at.Host, Protocol: 2, DisableIdentity: true})
	defer func() { _ = client.Close() }() // the process ends
	var n atomic.Int64
	router := chi.NewRouter()
	router.Get("/", func(w http.ResponseWriter, r *http.Request) {
		key := "baseline:" + strconv.FormatInt(n.Add(1), 10)
		if err := client.Set(r.Context(), key, "hello", 7*24*time.Hour).Err(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		body := []byte(`{"hello":"world"}`)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if _, err := w.Write(body); err != nil {
			fmt.Fprintln(os.Stderr, "baseline:", err)
		}
	})
	return serveOn(router)
}
