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
	// callerName is how the server's metrics name us.
	callerName = "sous"
	// frontendName is the service that a frontend answers for.
	frontendName = "cadence-frontend"
)

// Conn is a connection to a Cadence frontend over gRPC.
type Conn struct {
	// Service is what client.NewClient and worker.New take.
	Service workflowserviceclient.Interface

	link       *link
	dispatcher *yarpc.Dispatcher
}

// Dial makes a connection to the frontend at addr (HOST:PORT of its gRPC
// listener). It does not wait for the server: calls fail until there is one, and
// after an outage the connection is back within seconds.
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
		// It would log every error that the caller handles.
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

// Close waits until no call is under way, or ctx ends, and then ends the
// connection. Stop its workers before: the client tries an answer that fails
// again for a minute, whatever became of the worker.
func (c *Conn) Close(ctx context.Context) error {
	err := c.link.drain(ctx)
	if err = errors.Join(err, c.dispatcher.Stop()); err != nil {
		return fmt.Errorf("close the connection to Cadence: %w", err)
	}
	return nil
}
