import { check, throws } from "./check.js";
export default function () {
  check("encode", [...new TextEncoder().encode("é\u{1f600}\ud800")], [195, 169, 240, 159, 152, 128, 239, 191, 189]);
  check("encode nothing", new TextEncoder().encode().length, 0);
  const into = new Uint8Array(4); check("encodeInto", [new TextEncoder().encodeInto("aé€", into), [...into]], [{ read: 2, written: 3 }, [97, 195, 169, 0]]);
  const d = new TextDecoder();
  check("decode", [d.decode(new Uint8Array([0xef, 0xbb, 0xbf, 97, 0xff, 98])), d.encoding, d.decode()], ["a\ufffdb", "utf-8", ""]);
  check("cut character", d.decode(new Uint8Array([0xe2, 0x82])), "\ufffd");
  check("invalid parts", d.decode(new Uint8Array([97, 0xe2, 0x82, 0xff, 0xff, 98])), "a\ufffd\ufffd\ufffdb");
  check("keeps the mark", new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf])), "\ufeff");
  throws("fatal", () => new TextDecoder("utf8", { fatal: true }).decode(new Uint8Array([255])), "TypeError");
  check("stream", [d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }), d.decode(new Uint8Array([0xac]))], ["", "€"]);
  check("utf-16", new TextDecoder("utf-16le").decode(new Uint8Array([97, 0, 0xac, 0x20])), "a€");
  check("a view", d.decode(new DataView(new Uint8Array([97, 98, 99]).buffer, 1, 1)), "b");
  throws("label", () => new TextDecoder("koi9-r"), "RangeError");
  throws("argument", () => d.decode("text"), "TypeError");
  check("btoa", [btoa("ÿa"), btoa("")], ["/2E=", ""]);
  throws("btoa", () => btoa("€"), "InvalidCharacterError");
  check("atob", [atob("/2E="), atob(" Y Q\n"), atob("YQ==")], ["ÿa", "a", "a"]);
  throws("atob", () => atob("a"), "InvalidCharacterError");
  throws("atob alphabet", () => atob("_-=="), "InvalidCharacterError");
  throws("encodeInto of another view", () => new TextEncoder().encodeInto("a", new Uint8ClampedArray(2)), "TypeError");
  throws("encodeInto of a buffer", () => new TextEncoder().encodeInto("a", new ArrayBuffer(2)), "TypeError");
  throws("an object like a view", () => new TextDecoder().decode({ buffer: new ArrayBuffer(2), byteOffset: 0, byteLength: 2 }), "TypeError");
  const view = new Uint8Array([97, 98]); Object.defineProperty(view, "byteLength", { value: 1 }); check("members of a view", new TextDecoder().decode(view), "ab");
}
