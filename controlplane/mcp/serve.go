package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// listTTL is how long a client may use a list of tools, in milliseconds. A change of a function shows in
// the next list at once.
const listTTL = 5000

// methods answers the methods about tools and resources in place of the SDK, whose lists are fixed. The
// context of a call ends with its HTTP request, and when the client cancels it.
func (a *API) methods(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (answer sdk.Result, failed error) {
		s := sessionOf(ctx)
		if s == nil {
			return nil, errors.New("mcp: a method outside of a request")
		}
		// The SDK runs methods in goroutines of their own, where a panic would end the process.
		defer func() {
			if p := recover(); p != nil {
				a.log.Error("panic", zap.String("method", method), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
				answer, failed = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "an internal error occurred"}
			}
		}()
		if !methods[method] {
			return next(ctx, method, req)
		}
		values := ctx
		ctx, end := a.running.begin(s.request.Context(), s.identity(s.message.id))
		defer end()
		var result sdk.Result
		var err error
		switch params := req.GetParams().(type) {
		case *sdk.ListToolsParams:
			result, err = a.listTools(ctx, s, params.Cursor)
		case *sdk.CallToolParamsRaw:
			result, err = a.callTool(ctx, values, s, req, params)
		case *sdk.ListResourcesParams:
			result, err = a.listResources(ctx, s, params.Cursor)
		case *sdk.ListResourceTemplatesParams:
			result = resourceTemplates()
		case *sdk.ReadResourceParams:
			result, err = a.readResource(ctx, s, params.URI)
		default:
			return next(values, method, req)
		}
		if err != nil {
			return nil, a.fault(s, err)
		}
		return result, nil
	}
}

// fault returns the error of JSON-RPC for one of a method. A problem keeps its text; others are logged,
// since they may be about the store.
func (a *API) fault(s *session, err error) error {
	var known *jsonrpc.Error
	var refused *refusedError
	var coded *api.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request was refused", Data: refused.body}
	case errors.Is(err, context.Canceled):
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the request was cancelled"}
	case errors.As(err, &coded):
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: string(coded.Code) + ": " + coded.Message}
	}
	a.log.Warn("a request of MCP failed", zap.String("method", s.message.method), zap.Error(err))
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "an internal error occurred"}
}

func invalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// Cursors are names of functions behind this mark. A client must not interpret them.
const cursorMark = "f:"

func sealCursor(after string) string {
	if after == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(cursorMark + after))
}

func openCursor(cursor string) (after string, err error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) <= len(cursorMark) || string(raw[:len(cursorMark)]) != cursorMark {
		return "", invalidParams("the cursor is not one that this list returned")
	}
	after = string(raw[len(cursorMark):])
	if api.ValidateName("cursor", after) != nil {
		return "", invalidParams("the cursor is not one that this list returned")
	}
	return after, nil
}

// listTools answers a page of tools: first those of the platform that a role of the caller grants, then
// the functions by name.
func (a *API) listTools(ctx context.Context, s *session, cursor string) (*sdk.ListToolsResult, error) {
	after, err := openCursor(cursor)
	if err != nil {
		return nil, err
	}
	result := &sdk.ListToolsResult{Tools: []*sdk.Tool{}, Cacheable: sdk.Cacheable{TTLMs: listTTL, CacheScope: "private"}}
	if after == "" {
		for _, t := range platformTools() {
			if s.may(t.action) {
				result.Tools = append(result.Tools, t.describe())
			}
		}
	}
	tools, next, err := a.functions.page(ctx, s, after)
	if err != nil {
		return nil, err
	}
	result.Tools, result.NextCursor = append(result.Tools, tools...), sealCursor(next)
	return result, nil
}

// callTool runs a tool. values is the context that the SDK sends notifications by. A refusal of a route is
// a result for the model, which may try something else.
func (a *API) callTool(ctx, values context.Context, s *session, req sdk.Request, params *sdk.CallToolParamsRaw) (*sdk.CallToolResult, error) {
	session, _ := req.GetSession().(*sdk.ServerSession)
	var run func() (*sdk.CallToolResult, error)
	var total time.Duration
	if t := platformTool(params.Name); t != nil {
		run = func() (*sdk.CallToolResult, error) { return t.call(ctx, s, params.Arguments) }
	} else {
		d, err := a.functions.find(ctx, s, params.Name)
		switch {
		case err != nil:
			return nil, err
		case d == nil:
			return nil, invalidParams("unknown tool %.80q", params.Name)
		}
		total = d.timeout
		run = func() (*sdk.CallToolResult, error) { return a.functions.call(ctx, s, d, params.Arguments) }
	}
	stop := reportProgress(values, session, params.GetProgressToken(), total)
	result, err := run()
	stop()
	var refused *refusedError
	if errors.As(err, &refused) {
		return refusal(refused), nil
	}
	return result, err
}

// refusal returns the result of a tool whose route refused the request: the problem.
func refusal(err *refusedError) *sdk.CallToolResult {
	text := err.body
	if !json.Valid(text) {
		return failure(err)
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}
}

// failure returns the result of a tool that failed.
func failure(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}
}
