module.exports = require("stream").Readable;
