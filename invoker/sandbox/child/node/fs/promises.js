module.exports = require("internal/rejecting")("fs/promises", { constants: require("fs").constants });
