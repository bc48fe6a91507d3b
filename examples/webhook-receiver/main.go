// Webhook-receiver is an example that receives the events of a webhook, verifies their signatures with
// the library of Standard Webhooks, and prints each event once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// maxBody bounds a request, in bytes. Events have a few hundred.
const maxBody = 64 << 10

// event has the attributes of a CloudEvent that the example prints.
type event struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Subject string `json:"subject"`
}

// receiver handles deliveries.
type receiver struct {
	verifiers []*standardwebhooks.Webhook // one for each secret

	mu   sync.Mutex
	seen map[string]bool // ids; a program that must remember them keeps them in its database
}

// newReceiver returns a receiver of deliveries that one of the secrets signed. During a rotation it has
// both.
func newReceiver(secrets []string) (*receiver, error) {
	r := &receiver{seen: map[string]bool{}}
	for _, secret := range secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return nil, err
		}
		r.verifiers = append(r.verifiers, verifier)
	}
	if len(r.verifiers) == 0 {
		return nil, errors.New("WEBHOOK_SECRET is empty: set it to the secret that sous webhook create prints")
	}
	return r, nil
}

// verify reports whether a secret signed the body, less than five minutes ago.
func (r *receiver) verify(body []byte, header http.Header) error {
	var errs []error
	for _, verifier := range r.verifiers {
		err := verifier.Verify(body, header)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ServeHTTP verifies a delivery before it decodes it: the signature covers the bytes of the body. It
// answers quickly; work that takes longer belongs in a queue.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	if err := r.verify(body, req.Header); err != nil {
		http.Error(w, "the signature does not verify", http.StatusUnauthorized)
		return
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, "the body is no event", http.StatusBadRequest)
		return
	}
	if r.first(req.Header.Get(standardwebhooks.HeaderWebhookID)) {
		fmt.Printf("%s %s %s\n", e.Type, e.Subject, e.ID)
	}
	w.WriteHeader(http.StatusNoContent)
}

// first reports whether the id is new: a delivery may come twice.
func (r *receiver) first(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id] {
		return false
	}
	r.seen[id] = true
	return true
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:8090", "address to listen on")
	flag.Parse()
	r, err := newReceiver(strings.Fields(os.Getenv("WEBHOOK_SECRET")))
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: r, ReadTimeout: 10 * time.Second}
	return server.Serve(listener)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
