// CountQueuingStrategy: https://streams.spec.whatwg.org/#qs
import { check, throws } from "./check.js";
const S = CountQueuingStrategy;
export default function () {
  throws("Streams §7 constructor: needs new", () => S({ highWaterMark: 1 }), "TypeError"); throws("Streams §7.1 QueuingStrategyInit: needs one", () => new S(), "TypeError"); for (const v of [null, 1, {}, { highWaterMark: undefined }]) throws("Streams §7.1 QueuingStrategyInit: highWaterMark is required", () => new S(v), "TypeError");
  check("Streams §7 highWaterMark: an unrestricted double, as it is", [3, "4", -1, NaN, Infinity, null].map((highWaterMark) => String(new S({ highWaterMark }).highWaterMark)), ["3", "4", "-1", "NaN", "Infinity", "0"]);
  const s = new S({ highWaterMark: 1 }), size = s.size; check("Streams §7 size: one function, with a name and a length", [size === s.size, size === new S({ highWaterMark: 2 }).size, size.name, size.length], [true, true, "size", 0]);
  check("Streams §7.3 size(): 1", [size(), size(7), size({ byteLength: 9 })], [1, 1, 1]);
  throws("Web IDL: size is no constructor", () => new size(1), "TypeError"); for (const name of ["highWaterMark", "size"]) throws("Streams §7 " + name + ": the receiver is checked", () => Object.getOwnPropertyDescriptor(S.prototype, name).get.call({}), "TypeError"); throws("Streams §7 highWaterMark: read only", () => { s.highWaterMark = 1; }, "TypeError"); check("Streams §7: the class string", String(s), "[object CountQueuingStrategy]");
}
