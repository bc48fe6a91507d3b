package cadenceworker

import (
	"fmt"
	"net"

	apiv1 "github.com/uber/cadence-idl/go/proto/api/v1"
	"go.uber.org/cadence/.gen/go/cadence/workflowserviceclient"
	"go.uber.org/cadence/compatibility"
	"go.uber.org/yarpc"
	"go.uber.org/yarpc/transport/grpc"
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

	dispatcher *yarpc.Dispatcher
}

// Dial makes a connection to the frontend at addr (HOST:PORT of its gRPC
// listener). It does not wait for the server: calls fail until there is one, and
// the connection comes back by itself.
func Dial(addr string) (*Conn, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("address of Cadence: %w", err)
	}
	d := yarpc.NewDispatcher(yarpc.Config{
		Name: callerName,
		Outbounds: yarpc.Outbounds{
			frontendName: {Unary: grpc.NewTransport().NewSingleOutbound(addr)},
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
		dispatcher: d,
	}, nil
}

// Close ends the connection and the calls on it.
func (c *Conn) Close() error {
	if err := c.dispatcher.Stop(); err != nil {
		return fmt.Errorf("close the connection to Cadence: %w", err)
	}
	return nil
}
