// Package client is a Go client of the REST API of code-sous (docs/api.md).
//
// A Client sends requests to one server. Its methods return handles of resources, which
// have the requests as methods:
//
//	c, err := client.New("http://127.0.0.1:8080", client.Config{})
//	fn := c.Tenant("t_default").Namespace("default").Function("hello")
//	out, err := fn.Invoke(ctx, client.InvokeOptions{Ref: api.Ref{Alias: "prod"}})
//
// Creating a handle sends no request.
//
// A response that is not a success is returned as a *ResponseError, which wraps the
// *api.Error of its problem+json. If the server cannot be reached, the error is an
// *UnreachableError. Requests that are safe to repeat are sent again, at most
// Config.MaxAttempts times, if the server responds with 503 and Retry-After. The size of
// every response is bounded.
//
// The comment of a method lists the codes of its errors, beside those that every method
// can return: CodeAuthnRequired, CodeAuthnInvalid, CodeAuthzDenied, CodeInvalid,
// CodeValidationName, CodeStoreUnavailable and CodeShuttingDown.
package client
