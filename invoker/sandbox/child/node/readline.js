module.exports = { get promises() { return require("readline/promises"); } };
