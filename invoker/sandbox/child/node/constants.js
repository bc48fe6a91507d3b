module.exports = { ...require("os").constants.errno, ...require("os").constants.signals, ...require("os").constants.priority, ...require("fs").constants, ...require("crypto").constants };
