// Package models calls models for functions: cs.ai. A call names a provider or a route. It passes
//
//	targets.go   the route leads to targets, in the order of its strategy
//	run.go       circuits, limits a minute, retries; the next target after a failure of a provider
//	exchange.go  one request to a provider, with its key
//	chat.go, stream.go, embed.go  the operations
//	openai.go, anthropic.go       the protocols; events.go reads server-sent events
//	account.go   the usage: cost, limits, the sums, the line of the log
//
// Usage is recorded before the function has the answer. The key of a provider is opened here, and
// never reaches the sandbox: it is removed from answers and errors that repeat it.
package models

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/providers/routes"
	"github.com/codesous/sous/storage/spending"
)

// Keys opens the keys of providers.
type Keys interface {
	// Key returns the secret of a tenant's provider, for a call of an activation. Errors:
	// CodeHostSecretNotFound, CodeHostSecretUnavailable, CodeStoreUnavailable.
	Key(ctx context.Context, who *Caller, p *ai.Provider) ([]byte, error)
}

// Caller is the activation that calls a model.
type Caller struct {
	Tenant, Activation, Request string
	// MaxTokens bounds the output tokens of a call; 0 does not.
	MaxTokens int64
	// Timeout bounds a call, with the retries; 0 does not.
	Timeout time.Duration
	// Send sends a request through the egress guard, without following redirects. Its errors have
	// codes for the function.
	Send func(*http.Request) (*http.Response, error)
	// Explain returns the error of the body of a response with a code for the function.
	Explain func(ctx context.Context, err error) error
	// Admit refuses a call that a budget does not allow; nil admits all. Errors: CodeBudgetExceeded,
	// CodeStoreUnavailable.
	Admit func(ctx context.Context) error
	// Spend records usage. It returns when it is stored.
	Spend func(ctx context.Context, u agent.Usage) error
	// Log adds a line, in JSON, to the log of the activation.
	Log func(line []byte)
}

// Config has what a Client works with.
type Config struct {
	Store  *storage.Store
	Prices *spending.Prices // nil: usage has no costs
	Keys   Keys
	Logger *zap.Logger
}

// Client calls models. It is safe for concurrent use.
type Client struct {
	registry *providers.Registry
	limiter  *providers.Limiter
	store    *storage.Store
	prices   *spending.Prices
	keys     Keys
	logger   *zap.Logger
	metrics  *counters
	routes   *routes.Resolver
}

// New returns a client for the providers in a store. The caller passes notices to OnChange.
func New(cfg Config) (*Client, error) {
	registry, err := providers.NewRegistry(cfg.Store)
	if err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	return &Client{
		registry: registry, limiter: providers.NewLimiter(cfg.Store), store: cfg.Store, prices: cfg.Prices, keys: cfg.Keys,
		logger: cfg.Logger, metrics: newCounters(), routes: routes.New(registry, cfg.Prices, cfg.Logger),
	}, nil
}

// OnChange takes a notice of the store.
func (c *Client) OnChange(change storage.Change) { c.registry.OnChange(change) }
