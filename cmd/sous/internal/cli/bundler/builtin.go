package bundler

import "strings"

// builtinPrefix begins the names by which the sandbox knows Node.js' built-in modules.
const builtinPrefix = "node:"

// builtin returns the name, with its prefix, of the built-in module that path names. As in
// Node.js, a built-in module takes precedence over a package of its name, which a slash at
// the end of the path asks for: "buffer/".
func builtin(path string) (string, bool) {
	if strings.HasPrefix(path, builtinPrefix) {
		return path, true
	}
	switch path {
	case "assert", "assert/strict", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto",
		"dgram", "diagnostics_channel", "dns", "dns/promises", "domain", "events", "fs", "fs/promises", "http", "http2",
		"https", "inspector", "inspector/promises", "module", "net", "os", "path", "path/posix", "path/win32", "perf_hooks",
		"process", "punycode", "querystring", "readline", "readline/promises", "repl", "stream", "stream/consumers",
		"stream/promises", "stream/web", "string_decoder", "sys", "timers", "timers/promises", "tls", "trace_events", "tty",
		"url", "util", "util/types", "v8", "vm", "wasi", "worker_threads", "zlib":
		return builtinPrefix + path, true
	}
	return "", false
}
