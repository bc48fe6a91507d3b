package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiv1 "github.com/uber/cadence-idl/go/proto/api/v1"
	"go.uber.org/cadence/.gen/go/cadence/workflowserviceclient"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/compatibility"
	"go.uber.org/yarpc"
	"go.uber.org/yarpc/transport/grpc"
)

const frontend = "cadence-frontend"

// connection is a gRPC connection to Cadence's frontend.
type connection struct {
	service    workflowserviceclient.Interface
	dispatcher *yarpc.Dispatcher
}

// connect returns a connection to the frontend at addr, HOST:PORT of its gRPC port. It does not
// wait for the server: calls fail until it answers.
func connect(addr string) (*connection, error) {
	d := yarpc.NewDispatcher(yarpc.Config{
		Name:      "orders",
		Outbounds: yarpc.Outbounds{frontend: {Unary: grpc.NewTransport().NewSingleOutbound(addr)}},
	})
	if err := d.Start(); err != nil {
		return nil, fmt.Errorf("connect to Cadence: %w", err)
	}
	c := d.ClientConfig(frontend)
	return &connection{dispatcher: d, service: compatibility.NewThrift2ProtoAdapter(
		apiv1.NewDomainAPIYARPCClient(c), apiv1.NewWorkflowAPIYARPCClient(c),
		apiv1.NewWorkerAPIYARPCClient(c), apiv1.NewVisibilityAPIYARPCClient(c),
	)}, nil
}

func (c *connection) close() { _ = c.dispatcher.Stop() } // the process ends

// register creates the domain if it does not exist. A server uses a new domain after some
// seconds, and so does the worker.
func (c *connection) register(ctx context.Context, domain string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	days := int32(1)
	err := client.NewDomainClient(c.service, nil).Register(ctx, &shared.RegisterDomainRequest{
		Name: &domain, WorkflowExecutionRetentionPeriodInDays: &days,
	})
	var exists *shared.DomainAlreadyExistsError
	if errors.As(err, &exists) {
		return nil
	}
	return err
}
