module.exports = require("internal/rejecting")("dns/promises", {});
