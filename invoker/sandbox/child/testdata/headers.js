import { check, throws } from "./check.js";
export default function () {
  const h = new Headers({ "X-B": "1", Accept: " text/html " });
  h.append("x-b", "2"); h.append("Set-Cookie", "a=1"); h.append("set-cookie", "b=2");
  check("get", [h.get("X-b"), h.get("accept"), h.get("none"), h.has("ACCEPT")], ["1, 2", "text/html", null, true]);
  check("cookies", h.getSetCookie(), ["a=1", "b=2"]);
  check("sorted", [...h], [["accept", "text/html"], ["set-cookie", "a=1"], ["set-cookie", "b=2"], ["x-b", "1, 2"]]);
  h.set("x-b", "3"); h.delete("set-cookie");
  check("changed", [...h.entries()], [["accept", "text/html"], ["x-b", "3"]]);
  check("keys and values", [[...h.keys()], [...h.values()]], [["accept", "x-b"], ["text/html", "3"]]);
  const seen = []; h.forEach((v, k, all) => seen.push(k + v + (all === h))); check("forEach", seen, ["accepttext/htmltrue", "x-b3true"]);
  throws("name", () => h.set("a b", "1"), "not a header name");
  throws("value", () => h.set("a", "1\r\nb: 2"), "not a header value");
  const copy = new Headers(h); copy.set("x-b", "4");
  check("copy", [h.get("x-b"), copy.get("x-b")], ["3", "4"]);
  check("pairs", new Headers([["a", "1"]]).get("A"), "1");
}
