module.exports = require("stream").Transform;
