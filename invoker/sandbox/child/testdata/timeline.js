// User Timing, level 3 (https://w3c.github.io/user-timing/).
import { check, throws } from "./check.js";

function marks() {
  const before = performance.now(), m = performance.mark("a"), given = { n: 1 };
  check("a mark", [m instanceof PerformanceMark, m instanceof PerformanceEntry, String(m), m.name, m.entryType, m.duration, m.detail, m.startTime >= before], [true, true, "[object PerformanceMark]", "a", "mark", 0, null, true]);
  const other = performance.mark("b", { startTime: 7.5, detail: given });
  given.n = 2;
  check("options", [other.startTime, other.detail, JSON.stringify(other)], [7.5, { n: 1 }, '{"name":"b","entryType":"mark","startTime":7.5,"duration":0,"detail":{"n":1}}']);
  check("a mark of the constructor is not kept", [new PerformanceMark("c", { startTime: 1 }).startTime, performance.getEntriesByName("c").length], [1, 0]);
  throws("no name", () => performance.mark(), "TypeError"); throws("before the start", () => performance.mark("x", { startTime: -1 }), "TypeError"); throws("no number", () => performance.mark("x", { startTime: NaN }), "TypeError");
  throws("a detail without a clone", () => performance.mark("x", { detail() {} }), "DataCloneError");
  throws("constructor of entries", () => new PerformanceEntry(), "Illegal constructor"); throws("constructor of measures", () => new PerformanceMeasure(), "Illegal constructor");
  throws("receiver", () => Performance.prototype.mark.call({}, "x"), "TypeError"); throws("receiver of an entry", () => Object.getOwnPropertyDescriptor(PerformanceEntry.prototype, "name").get.call({}), "TypeError");
}

function measures() {
  performance.mark("from", { startTime: 10 }); performance.mark("from", { startTime: 20 }); performance.mark("to", { startTime: 50 });
  const of = (...args) => { const m = performance.measure("m", ...args); return [m.startTime, m.duration]; };
  check("two marks, the last of a name", of("from", "to"), [20, 30]);
  check("options", [of({ start: "from", end: 45 }), of({ start: 5, duration: 4 }), of({ end: "to", duration: 8 }), of({ start: 60, end: "to" })], [[20, 25], [5, 4], [42, 8], [60, -10]]);
  const whole = performance.measure("whole"), late = performance.measure("late", { start: 0, detail: [1] });
  check("to now", [whole.startTime, whole.duration > 0, whole instanceof PerformanceMeasure, whole.entryType, whole.detail, late.detail], [0, true, true, "measure", null, [1]]);
  throws("no such mark", () => performance.measure("x", "none"), "SyntaxError"); throws("a number is a name", () => performance.measure("x", 5), "SyntaxError"); throws("a negative time", () => performance.measure("x", { start: -1 }), "TypeError");
  throws("options and an end", () => performance.measure("x", { start: 1 }, "to"), "TypeError"); throws("too many options", () => performance.measure("x", { start: 1, end: 2, duration: 1 }), "TypeError");
  throws("no start and no end", () => performance.measure("x", { detail: 1 }), "TypeError"); check("no options and an end", performance.measure("x", {}, "to").duration, 50);
}

function lists() {
  const names = (list) => list.map((e) => e.name);
  performance.clearMarks(); performance.clearMeasures();
  performance.mark("late", { startTime: 9 }); performance.mark("early", { startTime: 1 }); performance.measure("both", "early", "late"); performance.mark("late", { startTime: 3 });
  check("in the order of their times", names(performance.getEntries()), ["early", "both", "late", "late"]);
  check("by type", [names(performance.getEntriesByType("measure")), performance.getEntriesByType("resource")], [["both"], []]);
  check("by name", [performance.getEntriesByName("late").map((e) => e.startTime), performance.getEntriesByName("late", "measure")], [[3, 9], []]);
  performance.getEntries().length = 0; performance.clearMarks("late"); check("cleared by name", names(performance.getEntries()), ["early", "both"]);
  performance.clearMeasures(); performance.clearMarks(); check("cleared", performance.getEntries(), []);
  for (let i = 0; i < 10001; i++) performance.mark("m"); check("a bound", performance.getEntries().length, 10000); performance.clearMarks();
}

export default function () { marks(); measures(); lists(); }
