module.exports = { url: () => undefined, close() {}, get console() { return console; } };
