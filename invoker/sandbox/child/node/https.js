const { client } = require("internal/httpclient");
const { TLSServer } = require("internal/httpserver");
module.exports = { ...client("https", "https:"), Server: TLSServer, createServer: (options, listener) => new TLSServer(options, listener) };
