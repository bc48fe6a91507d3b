package server

import (
	"context"

	"github.com/codesous/sous/cmd/sous/internal/build"
	"github.com/codesous/sous/invoker/hostcall"
	dispatch "github.com/codesous/sous/scheduler/webhooks"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/webhooks"
)

// deliverWebhooks starts the loop that delivers events to webhooks until life ends. Its requests pass
// the guard that the requests of functions pass.
func (p *platform) deliverWebhooks(life context.Context, s settings, store *storage.Store) error {
	allow, err := s.egress()
	if err != nil {
		return err
	}
	d, err := dispatch.New(store, webhooks.New(store, p.secrets), dispatch.Config{
		Sender: hostcall.NewGuarded(allow, nil), Logger: p.logger.Named("webhooks"), Metrics: p.metrics, UserAgent: "sous/" + build.Version(),
	})
	if err != nil {
		return err
	}
	p.loops.Go(func() { d.Run(life) })
	return nil
}
