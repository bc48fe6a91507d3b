const { request, get, Agent, globalAgent } = require("internal/http").client("https", "https:");
module.exports = { request, get, Agent, globalAgent };
