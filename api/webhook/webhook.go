// Package webhook defines the webhooks of a tenant: requests that the platform sends to an URL for
// events of the tenant's log. They are signed as Standard Webhooks asks; sign.go has the signature.
package webhook

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

// The bounds of webhooks.
const (
	MaxWebhooks       = 20   // of a tenant
	MaxURLLength      = 2048 // bytes
	MaxEvents         = 32   // types and prefixes of one webhook
	DefaultRetryLimit = 8
	MaxRetryLimit     = 20
	// MaxPending is how many deliveries of a webhook may wait. Further events wait in the log.
	MaxPending = 1000
	// MaxDeliveries is how many attempts the delivery log of a webhook keeps, and
	// DeliveryRetentionMS how long.
	MaxDeliveries       = 1000
	DeliveryRetentionMS = 7 * 24 * 60 * 60 * 1000
	// PreviousSecretMS is how long the secret before a rotation stays valid.
	PreviousSecretMS = 24 * 60 * 60 * 1000
	// DisableAfterMS is how long a webhook may fail without a success before it is disabled.
	DisableAfterMS = 5 * 24 * 60 * 60 * 1000
	// MaxErrorLength is how much of the answer of a receiver is kept, in bytes.
	MaxErrorLength = 1024
)

// Config is the part of a webhook that its author sets.
type Config struct {
	URL       string   `json:"url" doc:"where events are sent to by POST: https or http, without credentials and fragment"`
	Events    []string `json:"events" doc:"types of events such as job.dead, and prefixes such as job.*"`
	Namespace string   `json:"namespace,omitempty" doc:"only events of this namespace"`
	Queue     string   `json:"queue,omitempty" doc:"only events of the jobs of queues with this name"`
	Function  string   `json:"function,omitempty" doc:"only events of the jobs of functions with this name"`
	Enabled   bool     `json:"enabled"`
	Ordered   bool     `json:"ordered" doc:"send the events of one subject one after the other: one that fails holds back the later ones until its last attempt"`
	// RetryLimit is how often a delivery that failed is repeated.
	RetryLimit int `json:"retry_limit" doc:"how often a delivery that failed is repeated"`
}

// HookSettings is the request that creates or replaces a webhook. Absent fields take their defaults.
type HookSettings struct {
	URL        string   `json:"url" doc:"where events are sent to by POST: https or http, without credentials and fragment"`
	Events     []string `json:"events" doc:"types of events such as job.dead, and prefixes such as job.*"`
	Namespace  string   `json:"namespace,omitempty" doc:"only events of this namespace"`
	Queue      string   `json:"queue,omitempty" doc:"only events of the jobs of queues with this name"`
	Function   string   `json:"function,omitempty" doc:"only events of the jobs of functions with this name"`
	Enabled    *bool    `json:"enabled,omitempty" doc:"default true"`
	Ordered    bool     `json:"ordered,omitempty" doc:"send the events of one subject one after the other"`
	RetryLimit *int     `json:"retry_limit,omitempty" doc:"how often a delivery that failed is repeated, from 0 to 20; default 8"`
}

// Config returns the configuration of the new webhook, with its defaults.
func (n *HookSettings) Config() Config {
	c := Config{
		URL: n.URL, Events: n.Events, Namespace: n.Namespace, Queue: n.Queue, Function: n.Function,
		Enabled: n.Enabled == nil || *n.Enabled, Ordered: n.Ordered, RetryLimit: DefaultRetryLimit,
	}
	if n.RetryLimit != nil {
		c.RetryLimit = *n.RetryLimit
	}
	return c
}

// HookChange is a partial update of a webhook: a nil field is left unchanged.
type HookChange struct {
	URL        *string   `json:"url,omitempty"`
	Events     *[]string `json:"events,omitempty" doc:"all types and prefixes: those that are left out are removed"`
	Namespace  *string   `json:"namespace,omitempty" doc:"\"\" removes the filter"`
	Queue      *string   `json:"queue,omitempty" doc:"\"\" removes the filter"`
	Function   *string   `json:"function,omitempty" doc:"\"\" removes the filter"`
	Enabled    *bool     `json:"enabled,omitempty"`
	Ordered    *bool     `json:"ordered,omitempty"`
	RetryLimit *int      `json:"retry_limit,omitempty"`
}

// Apply applies the change to c.
func (ch *HookChange) Apply(c *Config) {
	set(&c.URL, ch.URL)
	set(&c.Events, ch.Events)
	set(&c.Namespace, ch.Namespace)
	set(&c.Queue, ch.Queue)
	set(&c.Function, ch.Function)
	set(&c.Enabled, ch.Enabled)
	set(&c.Ordered, ch.Ordered)
	set(&c.RetryLimit, ch.RetryLimit)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Filter returns the events that the webhook selects.
func (c *Config) Filter() event.Filter {
	return event.Filter{Types: c.Events, Namespace: c.Namespace, Queue: c.Queue, Function: c.Function}
}

// Validate returns CodeInvalid or CodeValidationName, with the field, for a configuration that
// cannot be stored. The address that the URL leads to is checked at each delivery.
func (c *Config) Validate() error {
	if err := validateURL(c.URL); err != nil {
		return err
	}
	switch {
	case len(c.Events) == 0 || len(c.Events) > MaxEvents:
		return api.InvalidField("events", "must name from 1 to "+strconv.Itoa(MaxEvents)+" types of events, or prefixes such as job.*")
	case c.RetryLimit < 0 || c.RetryLimit > MaxRetryLimit:
		return api.InvalidRange("retry_limit", 0, MaxRetryLimit)
	}
	if c.Namespace != "" {
		if err := api.ValidateName("namespace", c.Namespace); err != nil {
			return err
		}
	}
	if c.Queue != "" {
		if err := api.ValidateQueue(c.Queue); err != nil {
			return err
		}
	}
	if c.Function != "" {
		if err := api.ValidateName("function", c.Function); err != nil {
			return err
		}
	}
	filter := c.Filter()
	var unknown *api.Error
	if errors.As(filter.Validate(), &unknown) { // it names the field of a filter
		return api.InvalidField("events", strings.TrimPrefix(unknown.Message, "types "))
	}
	return nil
}

// Same reports whether two configurations are equal.
func (c *Config) Same(other *Config) bool {
	a, b := *c, *other
	a.Events, b.Events = nil, nil
	return slices.Equal(c.Events, other.Events) && a.URL == b.URL && a.Namespace == b.Namespace && a.Queue == b.Queue &&
		a.Function == b.Function && a.Enabled == b.Enabled && a.Ordered == b.Ordered && a.RetryLimit == b.RetryLimit
}

// validateURL refuses an URL that no request can be sent to.
func validateURL(text string) error {
	if len(text) > MaxURLLength {
		return api.InvalidField("url", "must have at most "+strconv.Itoa(MaxURLLength)+" bytes")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return api.InvalidField("url", "must be an absolute https or http URL")
	case u.User != nil:
		return api.InvalidField("url", "must not contain credentials: verify the signature instead")
	case u.Fragment != "":
		return api.InvalidField("url", "must not have a fragment")
	}
	return nil
}

// Webhook is a webhook with its status.
type Webhook struct {
	Name string `json:"name"`
	Config
	// Secret is set only in the answers of the creation and of a rotation.
	Secret                string `json:"secret,omitempty" doc:"the secret that signs deliveries: whsec_ and base64; shown at the creation and at a rotation only"`
	PreviousSecretUntilMS int64  `json:"previous_secret_until_ms,omitempty" doc:"until when deliveries are also signed with the secret before the last rotation"`
	LastStatus            int    `json:"last_status,omitempty" doc:"the HTTP status of the last attempt; absent if no answer arrived"`
	LastError             string `json:"last_error,omitempty" doc:"why the last attempt failed"`
	LastDeliveryAtMS      int64  `json:"last_delivery_at_ms,omitempty" doc:"when the last attempt ended"`
	FailingSinceMS        int64  `json:"failing_since_ms,omitempty" doc:"the first failure since the last success"`
	Pending               int64  `json:"pending" doc:"deliveries that wait for their first or next attempt"`
	Revision              int64  `json:"revision"`
	CreatedAtMS           int64  `json:"created_at_ms"`
	UpdatedAtMS           int64  `json:"updated_at_ms"`
}

// The results of an attempt.
const (
	Delivered = "delivered" // the receiver answered 2xx
	Retrying  = "retrying"  // it failed, and is repeated
	Failed    = "failed"    // it failed, and was the last attempt
)

// Delivery is one attempt to deliver an event, as the delivery log has it.
type Delivery struct {
	ID         string      `json:"id" doc:"of the entry in the delivery log"`
	Event      event.Event `json:"event"`
	Attempt    int         `json:"attempt" doc:"from 1"`
	Result     string      `json:"result" enum:"delivered,retrying,failed"`
	Status     int         `json:"status,omitempty" doc:"the HTTP status; absent if no answer arrived"`
	Error      string      `json:"error,omitempty" doc:"why it failed, with the first 1,024 bytes of the answer"`
	DurationMS int64       `json:"duration_ms"`
	AtMS       int64       `json:"at_ms" doc:"when the attempt ended"`
	NextAtMS   int64       `json:"next_at_ms,omitempty" doc:"when the next attempt is due"`
}

// QueuedDelivery is the answer to a test or a redelivery.
type QueuedDelivery struct {
	EventID string `json:"event_id" doc:"the webhook-id of the delivery, which the delivery log shows when it was tried"`
}
