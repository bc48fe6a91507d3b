const { Buffer, natives: codec, encodingOf, viewOf, kMaxLength } = require("internal/bytes");

function SlowBuffer(size) { return Buffer.allocUnsafeSlow(size); }

function transcode(source, from, to) {
  if (encodingOf(from) === undefined || encodingOf(to) === undefined) throw require("internal/errors").coded(Error, "U_ILLEGAL_ARGUMENT_ERROR", "Unable to transcode Buffer [U_ILLEGAL_ARGUMENT_ERROR]");
  let text = source.toString(from);
  if (encodingOf(to) === "latin1" || encodingOf(to) === "ascii") text = text.replace(encodingOf(to) === "ascii" ? /[^\0-\x7f]/g : /[^\0-\xff]/g, "?");
  return Buffer.from(text, to);
}

module.exports = {
  Buffer, SlowBuffer, transcode, kMaxLength, kStringMaxLength: 2 ** 29 - 24, INSPECT_MAX_BYTES: 50,
  constants: { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: 2 ** 29 - 24 },
  isUtf8: (b) => codec.isUtf8(viewOf(b, "input")),
  isAscii: (b) => codec.isAscii(viewOf(b, "input")),
  atob: (text) => atob(text), btoa: (text) => btoa(text),
  get Blob() { return require("internal/web").Blob; },
  get File() { return require("internal/web").File; },
};
