// The event is the payload of the schedule. A tick is retried if the function fails, so its
// work must be safe to repeat: here, the key of a report is the time of its tick.

export default async function handle(event: { keepDays?: number } | null, ctx: Context) {
  const { schedule = "by hand", tick_ms = Date.now() } = ctx.trigger.source ?? {};
  const report = { schedule, at: new Date(tick_ms).toISOString(), attempt: ctx.attempt };
  await cs.kv.set("report:" + report.at, report, { ttlSeconds: (event?.keepDays ?? 30) * 86_400 });
  await cs.kv.set("report:latest", report);
  cs.log.info(report);
  return report;
}
