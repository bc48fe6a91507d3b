const { unsupportedError } = require("internal/errors");

let classes;
// socketClasses makes a TLSSocket that exists and cannot connect. http2-wrapper, which got
// loads, wants the class of what Node wraps a stream in that is no socket.
function socketClasses() {
  if (classes) return classes;
  const { Socket } = require("net");
  class JSStreamSocket extends Socket {
    constructor(stream) {
      super();
      if (stream) throw unsupportedError("tls", "a socket over a stream");
    }
  }
  class TLSSocket extends Socket {
    constructor(socket, options) {
      super(options);
      this.encrypted = true;
      this.authorized = false;
      this.alpnProtocol = null;
      this._handle = { _parentWrap: socket && !(socket instanceof Socket) ? new JSStreamSocket() : socket };
    }
    connect() { throw unsupportedError("tls", "TLSSocket.connect"); }
    _write(chunk, encoding, done) { done(unsupportedError("tls", "TLSSocket.write")); }
  }
  for (const name of ["getPeerCertificate", "getCipher", "getProtocol", "getSession", "renegotiate", "exportKeyingMaterial"]) {
    TLSSocket.prototype[name] = () => { throw unsupportedError("tls", "TLSSocket." + name); };
  }
  return (classes = { TLSSocket });
}

module.exports = {
  rootCertificates: Object.freeze([]), DEFAULT_MIN_VERSION: "TLSv1.2", DEFAULT_MAX_VERSION: "TLSv1.3", DEFAULT_ECDH_CURVE: "auto", DEFAULT_CIPHERS: "", CLIENT_RENEG_LIMIT: 3, CLIENT_RENEG_WINDOW: 600,
  get TLSSocket() { return socketClasses().TLSSocket; },
};
