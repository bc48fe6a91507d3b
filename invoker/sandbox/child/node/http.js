const { METHODS, STATUS_CODES, validateHeaderName, validateHeaderValue, IncomingMessage, OutgoingMessage } = require("internal/http");
const { client, ClientRequest } = require("internal/httpclient");
const { Server, ServerResponse } = require("internal/httpserver");
module.exports = {
  ...client("http", "http:"), METHODS, STATUS_CODES, ClientRequest, IncomingMessage, OutgoingMessage, Server, ServerResponse, maxHeaderSize: 16384,
  createServer: (options, listener) => new Server(options, listener), validateHeaderName, validateHeaderValue, setMaxIdleHTTPParsers() {},
};
