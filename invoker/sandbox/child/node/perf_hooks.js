const { unsupportedError } = require("internal/errors");

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
  timerify: (f) => f, eventLoopUtilization: () => ({ idle: 0, active: 0, utilization: 0 }),
};
