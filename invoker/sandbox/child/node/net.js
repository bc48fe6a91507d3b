const { unsupportedError } = require("internal/errors");

function isIPv4(text) { return /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(String(text)); }

function isIPv6(text) {
  text = String(text).replace(/%[0-9a-zA-Z.-]+$/, "");
  const v4 = text.slice(text.lastIndexOf(":") + 1);
  if (v4.includes(".")) {
    if (!isIPv4(v4)) return false;
    text = text.slice(0, -v4.length) + "0:0";
  }
  const halves = text.split("::");
  if (halves.length > 2) return false;
  const groups = halves.flatMap((h) => (h === "" ? [] : h.split(":")));
  return groups.every((g) => /^[0-9a-fA-F]{1,4}$/.test(g)) && (halves.length === 2 ? groups.length < 8 : groups.length === 8);
}

let Socket;
// socketClass makes a socket that exists and cannot connect, so that clients load and their
// connecting fails.
function socketClass() {
  if (Socket) return Socket;
  const { Duplex } = require("stream");
  Socket = class Socket extends Duplex {
    constructor(options) {
      super(options);
      this.connecting = false;
      this.pending = true;
      this.readyState = "closed";
    }
    connect() { throw unsupportedError("net", "connect"); }
    setTimeout() { return this; }
    setNoDelay() { return this; }
    setKeepAlive() { return this; }
    ref() { return this; }
    unref() { return this; }
    address() { return {}; }
    _read() {}
    _write(chunk, encoding, done) { done(unsupportedError("net", "Socket.write")); }
  };
  return Socket;
}

module.exports = {
  isIPv4, isIPv6, isIP: (text) => (isIPv4(text) ? 4 : isIPv6(text) ? 6 : 0),
  get Socket() { return socketClass(); },
  get Stream() { return socketClass(); },
  getDefaultAutoSelectFamily: () => true, setDefaultAutoSelectFamily() {}, getDefaultAutoSelectFamilyAttemptTimeout: () => 250, setDefaultAutoSelectFamilyAttemptTimeout() {},
};
