// ByteLengthQueuingStrategy: https://streams.spec.whatwg.org/#qs
import { check, throws } from "./check.js";
const S = ByteLengthQueuingStrategy;
export default function () {
  throws("Streams §7 constructor: needs new", () => S({ highWaterMark: 1 }), "TypeError"); throws("Streams §7.1 QueuingStrategyInit: needs one", () => new S(), "TypeError"); for (const v of [null, 1, {}, { highWaterMark: undefined }]) throws("Streams §7.1 QueuingStrategyInit: highWaterMark is required", () => new S(v), "TypeError");
  check("Streams §7 highWaterMark: an unrestricted double, as it is", [3, "4", -1, NaN, Infinity, null].map((highWaterMark) => String(new S({ highWaterMark }).highWaterMark)), ["3", "4", "-1", "NaN", "Infinity", "0"]);
  const s = new S({ highWaterMark: 1 }), size = s.size; check("Streams §7 size: one function, with a name and a length", [size === s.size, size === new S({ highWaterMark: 2 }).size, size.name, size.length], [true, true, "size", 1]);
  check("Streams §7.2 size(chunk): its byteLength", [size(new Uint8Array(5)), size({ byteLength: "x" }), size({})], [5, "x", undefined]); throws("Streams §7.2 size(chunk): of nothing", () => size(), "TypeError");
  throws("Web IDL: size is no constructor", () => new size(1), "TypeError"); for (const name of ["highWaterMark", "size"]) throws("Streams §7 " + name + ": the receiver is checked", () => Object.getOwnPropertyDescriptor(S.prototype, name).get.call({}), "TypeError"); throws("Streams §7 highWaterMark: read only", () => { s.highWaterMark = 1; }, "TypeError"); check("Streams §7: the class string", String(s), "[object ByteLengthQueuingStrategy]");
}
