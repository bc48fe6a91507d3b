module.exports = require("stream").PassThrough;
