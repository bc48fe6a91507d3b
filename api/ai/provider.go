// Package ai has the vocabulary of model providers: their settings, routes over several of them, and
// the requests and answers of cs.ai, which have one form for all kinds of providers.
package ai

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
)

// The kinds of providers. A route sends calls to other providers.
const (
	KindOpenAI    = "openai"    // any endpoint in the form of OpenAI's API
	KindAnthropic = "anthropic" // the Messages API
	KindRoute     = "route"
)

// The contents of the line about each call in the log of its activation.
const (
	LogOff      = "off"
	LogMetadata = "metadata" // provider, model, tokens, cost, time, outcome
	LogFull     = "full"     // also the prompt and the answer, without secrets
)

// How a route selects its first target. The others follow in their order, from the selected one on.
const (
	StrategyFallback   = "fallback"    // always the first target
	StrategyRoundRobin = "round_robin" // in turns, on each replica
	StrategyLeastCost  = "least_cost"  // by the prices of the models; those without a price are last
	StrategyWeighted   = "weighted"    // at random, by weights
)

// Bounds of providers.
const (
	MaxProviders      = 100 // of a tenant
	MaxTargets        = 16  // of a route
	MaxDepth          = 4   // of routes to routes
	MaxLeaves         = 64  // targets of a route that are no routes, with those of its routes
	MaxModels         = 100
	MaxHeaders        = 20
	MaxHeaderBytes    = 4 << 10
	MaxBaseURL        = 1024
	MaxPerMinute      = 1_000_000_000
	MaxWeight         = 1000
	DefaultTimeoutMS  = 60_000
	MinTimeoutMS      = 100
	MaxTimeoutMS      = 900_000
	DefaultMaxRetries = 2
	MaxMaxRetries     = 10
)

// Provider is a provider of models, or a route, as it is stored.
type Provider struct {
	Name string `json:"name"`
	ProviderSettings
	Revision    int64 `json:"revision"`
	CreatedAtMS int64 `json:"created_at_ms"`
	UpdatedAtMS int64 `json:"updated_at_ms"`
}

// ProviderSettings are the settings of a provider. Zero values: Log LogOff, TimeoutMS DefaultTimeoutMS, no
// limits a minute, all models. A nil MaxRetries is DefaultMaxRetries. A route has Strategy and Targets
// alone.
type ProviderSettings struct {
	Kind    string `json:"kind" enum:"openai,anthropic,route"`
	BaseURL string `json:"base_url,omitempty" doc:"such as https://api.openai.com/v1, or https://api.anthropic.com"`
	// Secret names the secret with the key; "" sends none.
	Secret                string            `json:"secret,omitempty" doc:"the secret with the key: NAMESPACE/NAME; left out, no key is sent"`
	Models                []string          `json:"models,omitempty" doc:"the models that may be called, the first by default; left out, all"`
	RequestsPerMinute     int64             `json:"requests_per_minute,omitempty" doc:"0 for no limit"`
	InputTokensPerMinute  int64             `json:"input_tokens_per_minute,omitempty" doc:"0 for no limit"`
	OutputTokensPerMinute int64             `json:"output_tokens_per_minute,omitempty" doc:"0 for no limit"`
	Headers               map[string]string `json:"headers,omitempty" doc:"further headers of each request; they are not secret"`
	Log                   string            `json:"log,omitempty" enum:"off,metadata,full"`
	TimeoutMS             int64             `json:"timeout_ms,omitempty" doc:"of one request"`
	MaxRetries            *int              `json:"max_retries,omitempty" doc:"of a request that the provider could not serve"`
	Strategy              string            `json:"strategy,omitempty" enum:"fallback,round_robin,least_cost,weighted"`
	Targets               []RouteTarget     `json:"targets,omitempty"`
}

// RouteTarget is a target of a route. Without Model, the model of the call, or the default of the provider
// if the call has none. Weight counts for StrategyWeighted; 0 is 1.
type RouteTarget struct {
	Provider string `json:"provider"`
	Model    string `json:"model,omitempty"`
	Weight   int    `json:"weight,omitempty"`
}

// Retries returns the number of retries.
func (s *ProviderSettings) Retries() int {
	if s.MaxRetries == nil {
		return DefaultMaxRetries
	}
	return *s.MaxRetries
}

// SecretAt returns the namespace and the name of the secret, "" for none.
func (s *ProviderSettings) SecretAt() (namespace, name string) {
	namespace, name, _ = strings.Cut(s.Secret, "/")
	return namespace, name
}

// Normalize sets the defaults.
func (s *ProviderSettings) Normalize() {
	if s.Kind == KindRoute {
		for i := range s.Targets {
			s.Targets[i].Weight = max(s.Targets[i].Weight, 0)
		}
		return
	}
	s.BaseURL = strings.TrimRight(s.BaseURL, "/")
	if s.TimeoutMS == 0 {
		s.TimeoutMS = DefaultTimeoutMS
	}
	if s.Log == "" {
		s.Log = LogOff
	}
	if s.Secret != "" && !strings.Contains(s.Secret, "/") {
		s.Secret = "default/" + s.Secret
	}
}

// Validate returns CodeInvalid for the first field that is out of its range. Whether the targets of a
// route exist is checked where they are stored.
func (s *ProviderSettings) Validate() error {
	path, rule := s.check()
	if rule == "" {
		return nil
	}
	return api.InvalidField(path, rule)
}

func (s *ProviderSettings) check() (path, rule string) {
	switch s.Kind {
	case KindRoute:
		return s.checkRoute()
	case KindOpenAI, KindAnthropic:
	default:
		return "kind", "must be openai, anthropic or route"
	}
	switch {
	case s.Strategy != "":
		return "strategy", "is for routes"
	case len(s.Targets) > 0:
		return "targets", "is for routes"
	case s.Log != LogOff && s.Log != LogMetadata && s.Log != LogFull:
		return "log", "must be off, metadata or full"
	case s.TimeoutMS < MinTimeoutMS || s.TimeoutMS > MaxTimeoutMS:
		return "timeout_ms", fmt.Sprintf("must be from %d to %d", MinTimeoutMS, MaxTimeoutMS)
	case s.Retries() < 0 || s.Retries() > MaxMaxRetries:
		return "max_retries", fmt.Sprintf("must be from 0 to %d", MaxMaxRetries)
	case len(s.Models) > MaxModels:
		return "models", fmt.Sprintf("must be at most %d", MaxModels)
	}
	for i, model := range s.Models {
		if model == "" || !ValidModel(model) {
			return fmt.Sprintf("models[%d]", i), modelRule
		}
	}
	for _, limit := range []struct {
		path string
		n    int64
	}{
		{"requests_per_minute", s.RequestsPerMinute}, {"input_tokens_per_minute", s.InputTokensPerMinute},
		{"output_tokens_per_minute", s.OutputTokensPerMinute},
	} {
		if limit.n < 0 || limit.n > MaxPerMinute {
			return limit.path, fmt.Sprintf("must be from 0 to %d", MaxPerMinute)
		}
	}
	if rule := checkBaseURL(s.BaseURL); rule != "" {
		return "base_url", rule
	}
	if s.Secret != "" && !secretPattern.MatchString(s.Secret) {
		return "secret", "must be the namespace and the name of a secret, such as default/OPENAI_KEY"
	}
	if s.Secret != "" && !protects(s.BaseURL) {
		return "secret", "must not be sent by http, except to a loopback address: use https"
	}
	return s.checkHeaders()
}

// protects reports whether a key that is sent to a base URL cannot be read on the way.
func protects(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	ip, _ := netip.ParseAddr(u.Hostname()) // the zero Addr is no loopback address
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip.IsLoopback()
}

var secretPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}/[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// checkBaseURL returns the rule that a base URL breaks, "" for none.
func checkBaseURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "must be an absolute http or https URL"
	case len(text) > MaxBaseURL:
		return fmt.Sprintf("must have at most %d bytes", MaxBaseURL)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "must have no credentials, no query and no fragment"
	}
	return ""
}

// ownHeaders are those that the platform sets.
var ownHeaders = []string{
	"authorization", "x-api-key", "content-type", "content-length", "host", "transfer-encoding", "connection", "trailer", "te", "upgrade",
	"keep-alive", "proxy-connection", "proxy-authorization", "expect", "accept-encoding", "cookie",
}

func (s *ProviderSettings) checkHeaders() (path, rule string) {
	if len(s.Headers) > MaxHeaders {
		return "headers", fmt.Sprintf("must be at most %d", MaxHeaders)
	}
	total := 0
	for name, value := range s.Headers {
		total += len(name) + len(value)
		switch {
		case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
			return "headers", "must be names and values that HTTP allows"
		case slices.Contains(ownHeaders, strings.ToLower(name)):
			return "headers." + name, "is set by the platform"
		}
	}
	if total > MaxHeaderBytes {
		return "headers", "must have at most " + api.SizeText(MaxHeaderBytes) + " together"
	}
	return "", ""
}

func (s *ProviderSettings) checkRoute() (path, rule string) {
	only := ProviderSettings{Kind: s.Kind, Strategy: s.Strategy, Targets: s.Targets}
	switch {
	case !slices.Contains([]string{StrategyFallback, StrategyRoundRobin, StrategyLeastCost, StrategyWeighted}, s.Strategy):
		return "strategy", "must be fallback, round_robin, least_cost or weighted"
	case len(s.Targets) == 0 || len(s.Targets) > MaxTargets:
		return "targets", fmt.Sprintf("must be from 1 to %d", MaxTargets)
	case !equalPlain(s, &only):
		return "kind", "route has only strategy and targets"
	}
	for i, t := range s.Targets {
		at := fmt.Sprintf("targets[%d].", i)
		switch {
		case api.ValidateName("provider", t.Provider) != nil:
			return at + "provider", "must be the name of a provider"
		case !ValidModel(t.Model):
			return at + "model", modelRule
		case t.Weight < 0 || t.Weight > MaxWeight:
			return at + "weight", fmt.Sprintf("must be from 0 to %d", MaxWeight)
		}
	}
	return "", ""
}

// equalPlain reports whether s has none of the settings that a route lacks.
func equalPlain(s, only *ProviderSettings) bool {
	return s.BaseURL == only.BaseURL && s.Secret == "" && len(s.Models) == 0 && s.RequestsPerMinute == 0 && s.InputTokensPerMinute == 0 &&
		s.OutputTokensPerMinute == 0 && len(s.Headers) == 0 && s.Log == "" && s.TimeoutMS == 0 && s.MaxRetries == nil
}

const modelRule = "must be at most 128 printable ASCII characters without blanks, and not " + agent.Other

// ValidModel reports whether s may be the name of a model or of a phase, of which "" is none. Usage with
// another name could not be counted.
func ValidModel(s string) bool {
	return len(s) <= 128 && s != agent.Other && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// CheckRoutes checks that the targets of all routes exist, and that no route leads to itself, is nested
// deeper than MaxDepth, or leads to more than MaxLeaves targets. Errors: CodeProviderNotFound, CodeProviderCycle.
func CheckRoutes(all map[string]*Provider) error {
	for _, p := range all {
		if p.Kind != KindRoute {
			continue
		}
		leaves := 0
		if err := checkFrom(all, p, nil, &leaves); err != nil {
			return err
		}
	}
	return nil
}

// checkFrom checks a route, and adds its targets to leaves.
func checkFrom(all map[string]*Provider, p *Provider, above []string, leaves *int) error {
	if slices.Contains(above, p.Name) {
		return api.Errorf(api.CodeProviderCycle, "the route %s leads to itself: %s", p.Name, strings.Join(append(above, p.Name), ", "))
	}
	above = append(slices.Clone(above), p.Name)
	if len(above) > MaxDepth {
		return api.Errorf(api.CodeProviderCycle, "routes lead to routes at most %d deep: %s", MaxDepth, strings.Join(above, ", "))
	}
	for i, t := range p.Targets {
		next := all[t.Provider]
		switch {
		case next == nil:
			return api.Errorf(api.CodeProviderNotFound, "the provider %s, a target of %s, does not exist", t.Provider, p.Name).
				WithFields(api.FieldError{Path: fmt.Sprintf("targets[%d].provider", i), Message: "must be a provider that exists"})
		case next.Kind == KindRoute:
			if err := checkFrom(all, next, above, leaves); err != nil {
				return err
			}
		default:
			*leaves++
			if *leaves > MaxLeaves {
				return api.Errorf(api.CodeProviderCycle, "the route %s leads to more than %d targets, with those of its routes", above[0], MaxLeaves)
			}
		}
	}
	return nil
}
