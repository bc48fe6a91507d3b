module.exports = require("inspector");
