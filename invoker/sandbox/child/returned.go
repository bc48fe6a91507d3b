package child

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// answered converts a Response that the handler returned to the equivalent result of a web
// endpoint:
//
//	new Response("<p>", {status: 201, headers: {"content-type": "text/html"}})
//	{"statusCode": 201, "headers": {"content-type": "text/html"}, "body": "<p>"}
//
// The body is read to its end, unless it is a stream and the caller takes one (streamed). It is base64, with isBase64Encoded, unless its content type
// is that of a text. Another value is returned as it is.
func (a *activation) answered(value goja.Value) (goja.Value, error) {
	r := a.realm
	if _, built := r.classes["Response"]; !built {
		return value, nil
	}
	p, ok := stateOf[*response](value)
	if !ok {
		return value, nil
	}
	if p.kind == "error" {
		return nil, &refusedResult{api.ErrResultInvalid, "the result is Response.error(), which has no status"}
	}
	if p.body.flowing && a.head.Flags&wire.FlagStream != 0 {
		return a.streamed(p)
	}
	var pending goja.Value
	long := false
	tooLong := func() goja.Value {
		long = true
		return goja.Undefined()
	}
	err := r.try(func() {
		pending = p.body.read(r, api.MaxResultBytes, tooLong, func(data []byte) goja.Value { return p.object(r, data) }).value(r)
	})
	if err != nil {
		return nil, err
	}
	value, err = a.await(pending)
	if long {
		return nil, &refusedResult{api.ErrResultTooLarge, "the body of the returned Response is more than 6 MiB"}
	}
	return value, err
}

// object returns the result of a web endpoint for p, whose body has been read as data.
func (p *response) object(r *realm, data []byte) goja.Value {
	out, headers, cookies := r.vm.NewObject(), r.vm.NewObject(), []any{}
	set := func(obj *goja.Object, name string, v any) {
		must(obj.DefineDataProperty(name, r.vm.ToValue(v), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	}
	seen := map[string]bool{}
	for _, h := range p.headers.list {
		switch name := h[0]; {
		case name == "set-cookie":
			cookies = append(cookies, h[1])
		case !seen[name]:
			seen[name] = true
			joined, _ := p.headers.get(name)
			set(headers, name, joined)
		}
	}
	set(out, "statusCode", p.status)
	set(out, "headers", headers)
	if len(cookies) > 0 {
		set(out, "cookies", r.vm.NewArray(cookies...))
	}
	contentType, _ := p.headers.get("content-type")
	switch {
	case p.body.null:
	case isText(contentType) && utf8.Valid(data):
		set(out, "body", string(data))
	default:
		set(out, "body", base64.StdEncoding.EncodeToString(data))
		set(out, "isBase64Encoded", true)
	}
	return out
}

// isText reports whether a content type is that of a text in UTF-8.
func isText(contentType string) bool {
	essence, parameters, _ := strings.Cut(strings.ToLower(contentType), ";")
	if _, charset, ok := strings.Cut(parameters, "charset="); ok && strings.Trim(charset, `" `) != "utf-8" {
		return false
	}
	essence = strings.TrimSpace(essence)
	switch essence {
	case "application/json", "application/xml", "application/javascript", "application/x-www-form-urlencoded", "application/graphql", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(essence, "text/") || strings.HasSuffix(essence, "+json") || strings.HasSuffix(essence, "+xml")
}
