// setInterval and clearInterval: https://html.spec.whatwg.org/#timers
import { check, throws } from "./check.js";
const wait = (ms) => new Promise((r) => setTimeout(r, ms));
export default async function () {
  throws("HTML §8.6 setInterval(): needs a handler", () => setInterval(), "TypeError"); const log = []; let n = 0, id; await new Promise((done) => { id = setInterval((...args) => { log.push(args.join()); if (++n === 3) { clearInterval(id); done(); } }, 1, "a", "b"); }); await wait(4); check("HTML §8.6 timer initialization steps, step 9.8: repeats with its arguments, until it is cleared", log, ["a,b", "a,b", "a,b"]); const t = setInterval(() => log.push("gone"), 1); clearTimeout(t); const u = setTimeout(() => log.push("gone"), 1); clearInterval(u); await wait(4); check("HTML §8.6: clearTimeout and clearInterval are interchangeable", log.includes("gone"), false);
  const onError = (e) => { e.preventDefault(); log.push("error"); }; addEventListener("error", onError); log.length = 0; n = 0; await new Promise((done) => { const i = setInterval(() => { if (++n === 2) { clearInterval(i); done(); } throw new Error("x"); }, 1); }); await wait(1); removeEventListener("error", onError); check("HTML §8.6, step 9.5: an exception is reported, and it goes on", log, ["error", "error"]);
}
