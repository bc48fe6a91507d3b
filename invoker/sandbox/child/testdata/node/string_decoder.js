import { check } from "./check.js";
import { StringDecoder } from "node:string_decoder";
export default function () {
  for (const encoding of ["utf8", "utf16le", "base64", "hex", "latin1"]) {
    const bytes = Buffer.from("aé€😀z", encoding === "utf16le" ? "utf16le" : "utf8");
    for (let size = 1; size < 5; size++) {
      const d = new StringDecoder(encoding); let out = "";
      for (let i = 0; i < bytes.length; i += size) out += d.write(bytes.subarray(i, i + size));
      check(`${encoding} by ${size}`, out + d.end(), bytes.toString(encoding));
    }
  }
  const d = new StringDecoder(); check("cut", [d.write(Buffer.from([0xe2])), d.write(Buffer.from([0x82])), d.end(), d.end(Buffer.from([0xac]))], ["", "", "\ufffd", "\ufffd"]);
}
