// btoa: https://html.spec.whatwg.org/#dom-btoa
import { check, throws } from "./check.js";
export default function () {
  throws("HTML §8.3 btoa(): needs an argument", () => btoa(), "TypeError"); throws("HTML §8.3 btoa(): a symbol", () => btoa(Symbol()), "TypeError"); for (const [text, want] of [["", ""], ["a", "YQ=="], ["ab", "YWI="], ["abc", "YWJj"], ["\0\xff\xfe", "AP/+"], ["é", "6Q=="], [null, "bnVsbA=="], [undefined, "dW5kZWZpbmVk"], [1.5, "MS41"], [{ toString: () => "o" }, "bw=="]]) check("HTML §8.3 btoa(): " + JSON.stringify(text), btoa(text), want);
  const all = String.fromCharCode(...Array(256).keys()); check("HTML §8.3: atob of btoa", atob(btoa(all)) === all, true); for (const text of ["\u0100", "a€", "😀", "\ud800"]) { try { btoa(text); check("HTML §8.3 btoa()", "encoded", "refused"); } catch (e) { check("HTML §8.3 btoa(), step 1: an InvalidCharacterError for " + JSON.stringify(text), [e.name, e.code], ["InvalidCharacterError", 5]); } }
}
