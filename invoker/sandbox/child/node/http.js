module.exports = require("internal/http").client("http", "http:");
