package cadenceworker

import (
	"context"
	"errors"
	"fmt"
	"net"

	apiv1 "github.com/uber/cadence-idl/go/proto/api/v1"
	"go.uber.org/cadence/.gen/go/cadence/workflowserviceclient"
	"go.uber.org/cadence/compatibility"
	"go.uber.org/yarpc"
)

const (
	// callerName is the name of this client in the server's metrics.
	callerName = "sous"
	// frontendName is the service name of a frontend.
	frontendName = "cadence-frontend"
)

// Conn is a connection to a Cadence frontend over gRPC. It is safe for concurrent use; all
// workers and all functions of a process share one.
type Conn struct {
	// Service is the client for client.NewClient and worker.New.
	Service workflowserviceclient.Interface

	link       *link
	dispatcher *yarpc.Dispatcher
}

// Dial returns a connection to the frontend at addr, HOST:PORT of its gRPC listener. It
// does not wait for the server: calls fail until the server is available. After an outage
// the connection recovers within seconds. It fails if addr is malformed.
func Dial(addr string) (*Conn, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("address of Cadence: %w", err)
	}
	l := &link{addr: addr}
	d := yarpc.NewDispatcher(yarpc.Config{
		Name: callerName,
		Outbounds: yarpc.Outbounds{
			frontendName: {Unary: l},
		},
		// The logger would log every error that the caller handles.
		DisableAutoObservabilityMiddleware: true,
	})
	if err := d.Start(); err != nil {
		return nil, fmt.Errorf("connect to Cadence at %s: %w", addr, err)
	}
	frontend := d.ClientConfig(frontendName)
	return &Conn{
		Service: compatibility.NewThrift2ProtoAdapter(
			apiv1.NewDomainAPIYARPCClient(frontend),
			apiv1.NewWorkflowAPIYARPCClient(frontend),
			apiv1.NewWorkerAPIYARPCClient(frontend),
			apiv1.NewVisibilityAPIYARPCClient(frontend),
		),
		link:       l,
		dispatcher: d,
	}, nil
}

// Close waits until all calls have returned, or ctx ends, and closes the connection. Stop
// its workers first: the client retries a failed response for a minute, even after its
// worker was stopped.
func (c *Conn) Close(ctx context.Context) error {
	err := c.link.drain(ctx)
	err = errors.Join(err, c.dispatcher.Stop())
	if err != nil {
		return fmt.Errorf("close the connection to Cadence: %w", err)
	}
	return nil
}
