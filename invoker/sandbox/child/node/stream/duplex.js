module.exports = require("stream").Duplex;
