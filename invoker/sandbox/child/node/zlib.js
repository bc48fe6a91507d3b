// Compression. A stream works in parts, or with rare options as a whole when its input ends.
const { Buffer, FastBuffer, viewOf } = require("internal/bytes");
const { callback, outOfRange, unsupportedError } = require("internal/errors");
const { nextTick } = require("process");

const constants = {
  Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6,
  Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0, ZLIB_VERNUM: 4880, DEFLATE: 1, INFLATE: 2, GZIP: 3, GUNZIP: 4, DEFLATERAW: 5, INFLATERAW: 6, UNZIP: 7, BROTLI_DECODE: 8, BROTLI_ENCODE: 9,
  Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384, Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8, Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1,
  BROTLI_OPERATION_PROCESS: 0, BROTLI_OPERATION_FLUSH: 1, BROTLI_OPERATION_FINISH: 2, BROTLI_OPERATION_EMIT_METADATA: 3, BROTLI_PARAM_MODE: 0, BROTLI_MODE_GENERIC: 0, BROTLI_MODE_TEXT: 1, BROTLI_MODE_FONT: 2, BROTLI_DEFAULT_MODE: 0, BROTLI_PARAM_QUALITY: 1, BROTLI_MIN_QUALITY: 0, BROTLI_MAX_QUALITY: 11, BROTLI_DEFAULT_QUALITY: 11, BROTLI_PARAM_LGWIN: 2, BROTLI_PARAM_SIZE_HINT: 5,
};
const most = 2 ** 31 - 1;

function sniff(view) {
  const b = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  return b.length > 1 && b[0] === 0x1f && b[1] === 0x8b ? "gzip" : "zlib";
}

const kinds = {
  Deflate: { pack: true, format: "zlib" }, Inflate: { format: "zlib" }, Gzip: { pack: true, format: "gzip" }, Gunzip: { format: "gzip" },
  DeflateRaw: { pack: true, format: "raw" }, InflateRaw: { format: "raw" }, Unzip: {},
};

function run(kind, data, options = {}) {
  options = options || {};
  const { pack, format } = kinds[kind], view = viewOf(data, "buffer");
  const level = options.level === undefined ? -1 : options.level;
  if (!(Number.isInteger(level) && level >= -1 && level <= 9)) throw outOfRange("options.level", ">= -1 and <= 9", level);
  const dictionary = options.dictionary ? viewOf(options.dictionary, "options.dictionary") : undefined;
  if (pack) return new FastBuffer(natives.compress(view, format, level, dictionary));
  return new FastBuffer(natives.decompress(view, format || sniff(view), options.maxOutputLength || most, dictionary, options.finishFlush === constants.Z_SYNC_FLUSH));
}

// inParts reports whether a stream of a kind can work in parts.
function inParts(kind, options) {
  const { dictionary, finishFlush, maxOutputLength, level } = options || {};
  return !!kinds[kind].format && !dictionary && finishFlush === undefined && maxOutputLength === undefined && (level === undefined || (Number.isInteger(level) && level >= -1 && level <= 9));
}

// partly makes a stream compress or decompress what it gets at once.
function partly(stream, kind, options) {
  const { pack, format } = kinds[kind], name = { zlib: "deflate", raw: "deflate-raw" }[format] || format;
  const level = options && options.level !== undefined ? options.level : -1, size = (options && options.chunkSize) || constants.Z_DEFAULT_CHUNK;
  let codec = pack ? natives.deflater(name, level) : natives.inflater(name), begun = false, ended = false, rest;
  const put = (buffer) => {
    const out = new FastBuffer(buffer);
    for (let at = 0; at < out.length; at += size) stream.push(out.subarray(at, at + size));
  };
  // Another member of gzip may follow the last one; Node ignores anything else. Less than two
  // bytes wait for the next part.
  const unpack = (part) => {
    begun = begun || part.length > 0;
    if (rest) {
      part = Buffer.concat([rest, part]);
      codec = natives.inflater(name);
      rest = part.length < 2 ? part : undefined;
      ended = !rest && (part[0] !== 0x1f || part[1] !== 0x8b);
      if (rest || ended) return;
    }
    natives.feed(codec, part);
    for (;;) {
      const made = natives.inflate(codec, size);
      if (made === undefined) return;
      if (typeof made !== "number") {
        put(made);
      } else if (format !== "gzip" || !natives.member(codec)) {
        if (format === "gzip" && made < 2) rest = part.subarray(part.length - made);
        else ended = true;
        return;
      }
    }
  };
  const attempt = (f, done) => {
    try {
      f();
    } catch (e) {
      done(e);
      return;
    }
    done();
  };
  stream._transform = (chunk, encoding, done) => attempt(() => {
    const part = Buffer.from(viewOf(chunk, "chunk", encoding));
    stream.bytesWritten += part.length;
    if (!pack && !ended) unpack(part);
    for (let from = 0; pack && from < part.length; from += natives.part()) put(natives.deflate(codec, part, from));
  }, done);
  stream._flush = (done) => attempt(() => {
    if (pack) put(natives.deflate(codec));
    else if (begun && !ended && !rest) natives.unfinished();
  }, done);
}

const made = {};
// classOf makes a stream's class when it is first used.
function classOf(kind) {
  if (made[kind]) return made[kind];
  const { Transform } = require("stream");
  const C = function (options) {
    if (!new.target) return new C(options);
    Transform.call(this, options);
    this.bytesWritten = 0;
    if (inParts(kind, options)) {
      partly(this, kind, options);
      return;
    }
    const parts = [];
    this._transform = (chunk, encoding, done) => {
      const part = Buffer.from(viewOf(chunk, "chunk", encoding));
      this.bytesWritten += part.length;
      parts.push(part);
      done();
    };
    this._flush = (done) => {
      let out;
      try {
        if (parts.length > 0 || kinds[kind].pack) out = run(kind, Buffer.concat(parts), options);
      } catch (e) {
        done(e);
        return;
      }
      const size = (options && options.chunkSize) || constants.Z_DEFAULT_CHUNK;
      for (let at = 0; out && at < out.length; at += size) this.push(out.subarray(at, at + size));
      done();
    };
  };
  Object.defineProperty(C, "name", { value: kind });
  Object.setPrototypeOf(C.prototype, Transform.prototype);
  Object.setPrototypeOf(C, Transform);
  Object.assign(C.prototype, {
    flush(kind_, done) { nextTick(typeof kind_ === "function" ? kind_ : done || (() => {})); },
    close(done) { if (done) this.once("close", done); this.destroy(); },
    params(level, strategy, done) { throw unsupportedError("zlib", "params"); },
    reset() { throw unsupportedError("zlib", "reset"); },
  });
  return (made[kind] = C);
}

for (const kind of Object.keys(kinds)) {
  const lower = kind[0].toLowerCase() + kind.slice(1);
  Object.defineProperty(exports, kind, { enumerable: true, configurable: true, get: () => classOf(kind) });
  exports[`create${kind}`] = (options) => new (classOf(kind))(options);
  exports[`${lower}Sync`] = (data, options) => run(kind, data, options);
  exports[lower] = (data, options, done) => {
    if (typeof options === "function") [options, done] = [{}, options];
    callback(done);
    const view = viewOf(data, "buffer");
    let out, error = null;
    try {
      out = run(kind, view, options);
    } catch (e) {
      error = e;
    }
    nextTick(() => (error ? done(error) : done(null, out)));
  };
}
exports.crc32 = (data, value = 0) => natives.crc32(viewOf(data, "data"), value);
exports.constants = constants;
exports.codes = { Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6, 0: "Z_OK", 1: "Z_STREAM_END", 2: "Z_NEED_DICT", "-1": "Z_ERRNO", "-2": "Z_STREAM_ERROR", "-3": "Z_DATA_ERROR", "-4": "Z_MEM_ERROR", "-5": "Z_BUF_ERROR", "-6": "Z_VERSION_ERROR" };
for (const name of Object.keys(constants)) if (/^(Z_|ZLIB_|[A-Z]+$)/.test(name)) exports[name] = constants[name];
