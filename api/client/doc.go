// Package client speaks the REST API of code-sous (docs/api.md) from Go.
//
// A Client knows one server. From it one walks down to what a request is about:
//
//	c, err := client.New("http://127.0.0.1:8080", client.Config{})
//	fn := c.Tenant("t_default").Namespace("default").Function("hello")
//	out, err := fn.Invoke(ctx, client.InvokeOptions{Ref: api.Ref{Alias: "prod"}})
//
// Those handles cost nothing and ask nothing of the server.
//
// An answer that is not a success becomes a *ResponseError, which wraps the
// *api.Error of its problem+json; a server that could not be reached becomes an
// *UnreachableError. Requests that are safe to repeat are repeated, a bounded
// number of times, where the server answers 503 and says when to come back.
// No answer is read without a bound.
package client
