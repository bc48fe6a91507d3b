module.exports = require("stream").Writable;
