package child

import (
	"slices"

	"github.com/dop251/goja"
)

// requestOptions are the members of a Request that concern a browser: its origin, its cookies
// and its cache. They are kept and have no effect on the request that is sent.
type requestOptions struct {
	mode, credentials, cache, referrer, referrerPolicy, integrity string
	keepalive                                                     bool
}

// defaultOptions are those of a request of a script.
func defaultOptions() requestOptions {
	return requestOptions{mode: "cors", credentials: "same-origin", cache: "default", referrer: "about:client"}
}

// readOptions returns the options of a request with the changes of init. It throws a TypeError
// for a value that is none of an enumeration.
func (r *realm) readOptions(before *requestOptions, init *goja.Object) *requestOptions {
	o := defaultOptions()
	if before != nil {
		o = *before
	}
	for _, option := range []struct {
		name   string
		value  *string
		values []string // nil: any text
	}{
		{"cache", &o.cache, []string{"default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"}},
		{"credentials", &o.credentials, []string{"omit", "same-origin", "include"}},
		{"integrity", &o.integrity, nil},
		{"mode", &o.mode, []string{"same-origin", "no-cors", "cors"}},
		{"referrer", &o.referrer, nil},
		{"referrerPolicy", &o.referrerPolicy, []string{
			"", "no-referrer", "no-referrer-when-downgrade", "same-origin", "origin", "strict-origin",
			"origin-when-cross-origin", "strict-origin-when-cross-origin", "unsafe-url",
		}},
	} {
		v := given(init, option.name)
		if v == nil {
			continue
		}
		text := r.text(v).String()
		if option.values != nil && !slices.Contains(option.values, text) {
			panic(r.vm.NewTypeError("Request: %q is no value of the option %s", text, option.name))
		}
		if option.value == &o.referrer {
			text = r.referrerOf(text)
		}
		*option.value = text
	}
	if v := given(init, "keepalive"); v != nil {
		o.keepalive = v.ToBoolean()
	}
	if o == defaultOptions() {
		return nil
	}
	return &o
}

// check throws a TypeError for options that exclude each other (Fetch: new Request(), steps 17 and
// 24 to 32): a server has the same origin as no URL.
func (o *requestOptions) check(r *realm, method string) {
	if o == nil {
		return
	}
	if o.cache == "only-if-cached" && o.mode != "same-origin" {
		panic(r.vm.NewTypeError("Request: the cache only-if-cached needs the mode same-origin"))
	}
	if o.mode == "no-cors" && !slices.Contains([]string{"GET", "HEAD", "POST"}, method) {
		panic(r.vm.NewTypeError("Request: the method %s is not allowed in the mode no-cors", method))
	}
}

// referrerOf returns the referrer of an option: "", which means no referrer, "about:client", or a
// URL in its normal form. It throws a TypeError for other texts.
func (r *realm) referrerOf(text string) string {
	if text == "" || text == "about:client" {
		return text
	}
	u, err := r.parseURL(r.vm.ToValue(text), nil)
	if err != nil {
		panic(r.vm.NewTypeError("Request: the referrer %q is no URL", text))
	}
	return u.Href(false)
}

// optionMembers are the members of Request that show the options.
func optionMembers() []member[*request] {
	of := func(name string, get func(o requestOptions) any) member[*request] {
		return member[*request]{name: name, get: func(r *realm, q *request) goja.Value {
			if q.options == nil {
				return r.vm.ToValue(get(defaultOptions()))
			}
			return r.vm.ToValue(get(*q.options))
		}}
	}
	return []member[*request]{
		of("destination", func(requestOptions) any { return "" }),
		of("referrer", func(o requestOptions) any { return o.referrer }),
		of("referrerPolicy", func(o requestOptions) any { return o.referrerPolicy }),
		of("mode", func(o requestOptions) any { return o.mode }),
		of("credentials", func(o requestOptions) any { return o.credentials }),
		of("cache", func(o requestOptions) any { return o.cache }),
		of("integrity", func(o requestOptions) any { return o.integrity }),
		of("keepalive", func(o requestOptions) any { return o.keepalive }),
		of("isReloadNavigation", func(requestOptions) any { return false }),
		of("isHistoryNavigation", func(requestOptions) any { return false }),
		of("duplex", func(requestOptions) any { return "half" }),
	}
}
