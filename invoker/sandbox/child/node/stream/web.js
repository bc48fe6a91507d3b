// The streams of the web: those of the platform, which are its globals.
const own = require("internal/webstreams");
for (const name of Object.keys(own)) if (name !== "bodyStream") exports[name] = name in globalThis ? globalThis[name] : own[name];
