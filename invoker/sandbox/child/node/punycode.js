// Punycode (RFC 3492).
const base = 36, tMin = 1, tMax = 26, skew = 38, damp = 700, initialBias = 72, initialN = 128, max = 0x7fffffff;

function fail(why) { throw new RangeError(why); }

function adapt(delta, points, first) {
  let k = 0;
  delta = first ? Math.floor(delta / damp) : delta >> 1;
  delta += Math.floor(delta / points);
  for (; delta > ((base - tMin) * tMax) >> 1; k += base) delta = Math.floor(delta / (base - tMin));
  return Math.floor(k + ((base - tMin + 1) * delta) / (delta + skew));
}

const threshold = (k, bias) => (k <= bias ? tMin : k >= bias + tMax ? tMax : k - bias);
const digit = (code) => (code >= 48 && code < 58 ? code - 22 : code >= 65 && code < 91 ? code - 65 : code >= 97 && code < 123 ? code - 97 : base);

const ucs2 = {
  decode: (text) => Array.from(text, (c) => c.codePointAt(0)),
  encode: (points) => String.fromCodePoint(...points),
};

function decode(input) {
  const out = [];
  const at = Math.max(input.lastIndexOf("-"), 0);
  for (let i = 0; i < at; i++) {
    if (input.charCodeAt(i) >= 0x80) fail("Illegal input >= 0x80 (not a basic code point)");
    out.push(input.charCodeAt(i));
  }
  let n = initialN, i = 0, bias = initialBias;
  for (let index = at > 0 ? at + 1 : 0; index < input.length;) {
    const before = i;
    for (let w = 1, k = base; ; k += base) {
      if (index >= input.length) fail("Invalid input");
      const d = digit(input.charCodeAt(index++));
      if (d >= base || d > Math.floor((max - i) / w)) fail(d >= base ? "Invalid input" : "Overflow: input needs wider integers to process");
      i += d * w;
      const t = threshold(k, bias);
      if (d < t) break;
      if (w > Math.floor(max / (base - t))) fail("Overflow: input needs wider integers to process");
      w *= base - t;
    }
    const size = out.length + 1;
    bias = adapt(i - before, size, before === 0);
    n += Math.floor(i / size);
    i %= size;
    out.splice(i++, 0, n);
  }
  return String.fromCodePoint(...out);
}

function encode(input) {
  const points = ucs2.decode(input);
  let out = points.filter((c) => c < 0x80).map((c) => String.fromCharCode(c)).join("");
  const basic = out.length;
  let handled = basic, n = initialN, delta = 0, bias = initialBias;
  if (basic) out += "-";
  const letter = (d) => String.fromCharCode(d < 26 ? d + 97 : d + 22);
  while (handled < points.length) {
    const m = Math.min(...points.filter((c) => c >= n));
    delta += (m - n) * (handled + 1);
    n = m;
    for (const c of points) {
      if (c < n) delta++;
      if (c !== n) continue;
      let q = delta;
      for (let k = base; ; k += base) {
        const t = threshold(k, bias);
        if (q < t) break;
        out += letter(t + ((q - t) % (base - t)));
        q = Math.floor((q - t) / (base - t));
      }
      out += letter(q);
      bias = adapt(delta, handled + 1, handled === basic);
      delta = 0;
      handled++;
    }
    delta++;
    n++;
  }
  return out;
}

function labels(domain, f) {
  const at = domain.lastIndexOf("@") + 1;
  return domain.slice(0, at) + domain.slice(at).split(/[.\u3002\uff0e\uff61]/).map(f).join(".");
}

module.exports = {
  version: "2.1.0", ucs2, decode, encode,
  toASCII: (domain) => labels(domain, (l) => (/[^\0-\x7f]/.test(l) ? "xn--" + encode(l) : l)),
  toUnicode: (domain) => labels(domain, (l) => (l.startsWith("xn--") ? decode(l.slice(4).toLowerCase()) : l)),
};
