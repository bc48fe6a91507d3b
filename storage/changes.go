package storage

import (
	"context"
	"encoding/json"

	"github.com/redis/go-redis/v9"
)

// The kinds of a Change.
const (
	// ChangeFunction: the function, its aliases or its versions changed.
	ChangeFunction = "function"
	// ChangeCancel: the activation was cancelled.
	ChangeCancel = "cancel"
	// ChangeBinding: the Cadence worker binding was made, changed or deleted.
	ChangeBinding = "binding"
	// ChangeTrigger: a queue trigger of the namespace was made, changed or deleted.
	ChangeTrigger = "trigger"
	// ChangeSecret: the secret was made, changed or deleted.
	ChangeSecret = "secret"
	// ChangeKey: the API key was revoked.
	ChangeKey = "key"
	// ChangeDomain: the custom domain was added, changed, verified or removed.
	ChangeDomain = "domain"
	// ChangeWebhook: a webhook of the tenant was created, changed or deleted, or has deliveries.
	ChangeWebhook = "webhook"
	// ChangeProvider: a provider of models of the tenant, or its circuit, was changed.
	ChangeProvider = "provider"
	// ChangeLimits: the limits of the tenant were set.
	ChangeLimits = "limits"
	// ChangeRan: activations of Functions began or ended. Package activity sends it.
	ChangeRan = "ran"
	// ChangeCall: the client of the MCP endpoint cancelled Call.
	ChangeCall = "call"
	// ChangeResubscribed is never published. Subscribe passes it on when the connection was
	// re-established, since changes before that may have been missed.
	ChangeResubscribed = "resubscribed"
)

// Change is a notice to other processes, in JSON on the channel cs:changes, such as
//
//	{"kind":"function","tenant":"t_acme01","namespace":"default","function":"mail"}
//
// Kind determines which other fields are set. Notices are best effort: a reader that depends
// on one must also look by itself, later. It looks at the record, which the notice does not
// contain; notices may arrive in another order than the changes were made.
type Change struct {
	Kind         string `json:"kind"`
	Tenant       string `json:"tenant,omitempty"`
	Namespace    string `json:"namespace,omitempty"`
	Function     string `json:"function,omitempty"`
	ActivationID string `json:"activation_id,omitempty"`
	KeyID        string `json:"key_id,omitempty"`
	Binding      string `json:"binding,omitempty"`
	Secret       string `json:"secret,omitempty"`
	Domain       string `json:"domain,omitempty"`
	Call         string `json:"call,omitempty"`
	Functions    string `json:"functions,omitempty"` // tenant/namespace/name, separated by spaces
}

// PublishChange sends a notice to every process that subscribed, this one included. It does
// not wait for them. It comes after the change that it announces: a reader that is notified
// first would read the old record and keep it. CodeStoreUnavailable.
func (s *Store) PublishChange(ctx context.Context, c Change) error {
	raw, err := Encode(c)
	if err != nil {
		return err
	}
	node, err := s.Publisher(ctx, channelChanges)
	if err == nil {
		err = node.Publish(ctx, channelChanges, raw).Err()
	}
	return Failure(ctx, "publish change", err)
}

// Publisher returns the connection on which to publish notices in a channel. On a
// cluster it is that of the node on which the client subscribes to the channel: the
// nodes of a KVRocks cluster do not pass notices on to each other.
func (s *Store) Publisher(ctx context.Context, channel string) (redis.Cmdable, error) {
	if cluster, ok := s.rdb.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, channel)
	}
	return s.rdb, nil
}

// Subscribe calls hear with every notice, one at a time, until ctx ends or the Store is
// closed. It returns once notices arrive, or without delay where the store does not
// answer. In both cases the connection is re-established whenever it breaks, and hear receives
// ChangeResubscribed each time, because notices may have been missed. A hear that is too slow
// receives it as well; no other subscriber waits for it.
func (s *Store) Subscribe(ctx context.Context, hear func(Change)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l := s.listeners.Add()
	s.listening.Do(func() { s.receiveChanges(ctx) })
	s.actors.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.life, cancel)()
		l.Serve(ctx, hear, Change{Kind: ChangeResubscribed})
	})
	return nil
}

// receiveChanges receives the notices for all subscribers until the Store is closed. ctx bounds
// the wait for the first confirmation: if that fails, the goroutine receives it, and treats it
// like every later one.
func (s *Store) receiveChanges(ctx context.Context) {
	sub := s.rdb.Subscribe(s.life, channelChanges)
	_, _ = sub.ReceiveTimeout(ctx, readTimeout)
	events := sub.ChannelWithSubscriptions()
	s.actors.Go(func() {
		defer func() { _ = sub.Close() }() // the subscription ends either way
		for {
			select {
			case <-s.life.Done():
				return
			case event, open := <-events:
				if !open {
					return
				}
				s.deliver(event)
			}
		}
	})
}

// deliver passes an event to every subscriber. After the first confirmation of the
// subscription, every further one means that the connection was lost in between.
func (s *Store) deliver(event any) {
	var c Change
	switch event := event.(type) {
	case *redis.Subscription:
		c.Kind = ChangeResubscribed
	case *redis.Message:
		err := json.Unmarshal([]byte(event.Payload), &c)
		if err != nil { // a message of a newer release, or none of ours
			s.metrics.heard(c.Kind)
			return
		}
	default:
		return
	}
	s.metrics.heard(c.Kind)
	s.listeners.Send(c)
}
