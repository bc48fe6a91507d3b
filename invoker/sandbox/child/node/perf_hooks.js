const { unsupportedError } = require("internal/errors");

const eventLoopUtilization = () => ({ idle: 0, active: 0, utilization: 0 }), timerify = (f) => f;
// The global object has them in Node, too; here it has them once a script imports this module.
const own = require("internal/performance").performance;
for (const [name, value] of Object.entries({ eventLoopUtilization, timerify })) Object.defineProperty(own, name, { value, writable: true, configurable: true });

module.exports = {
  get performance() { return performance; },
  get PerformanceEntry() { return PerformanceEntry; }, get PerformanceMark() { return PerformanceMark; }, get PerformanceMeasure() { return PerformanceMeasure; },
  constants: {}, monitorEventLoopDelay() { throw unsupportedError("perf_hooks", "monitorEventLoopDelay"); },
  // Nothing is observed: an observer waits in vain, as in a quiet process.
  PerformanceObserver: class PerformanceObserver {
    static get supportedEntryTypes() { return []; }
    observe() {}
    disconnect() {}
    takeRecords() { return []; }
  },
  timerify, eventLoopUtilization,
};
