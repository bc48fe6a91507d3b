// atob: https://html.spec.whatwg.org/#dom-atob
import { check, throws } from "./check.js";
export default function () {
  throws("HTML §8.3 atob(): needs an argument", () => atob(), "TypeError"); throws("HTML §8.3 atob(): a symbol", () => atob(Symbol()), "TypeError");
  for (const [text, want] of [["", ""], ["YQ==", "a"], ["YWI=", "ab"], ["YWJj", "abc"], ["YQ", "a"], ["YWI", "ab"], [" Y\tW\nJ\fj\r", "abc"], ["Y Q = =", "a"], ["/+8=", "\xff\xef"], ["YR==", "a"], [12, "\xd7"], [null, "\x9e\xe9e"], [true, "\xb6\xbb\x9e"]]) check("Infra §7 forgiving-base64 decode: " + JSON.stringify(text), atob(text), want);
  for (const text of ["a", "abcde", "YQ=", "YQ===", "=", "====", "Y=Q=", "YWJj=", "YWJj====", "Y-_Q", "Yé==", "\u00a0YQ==", "\vYQ==", "{}", undefined + "!", "YQ==YQ=="]) { try { atob(text); check("Infra §7: " + JSON.stringify(text), "decoded", "refused"); } catch (e) { check("HTML §8.3 atob(), step 2: an InvalidCharacterError for " + JSON.stringify(text), [e.name, e.code, e instanceof DOMException], ["InvalidCharacterError", 5, true]); } }
}
