import { DateTime, Duration, Interval, Settings } from "luxon";

Settings.defaultZone = "utc";
Settings.defaultLocale = "en-US";

export default async function () {
	const t = DateTime.fromISO("2026-07-01T12:34:56.789Z");
	return {
		iso: t.toISO(),
		berlin: t.setZone("Europe/Berlin").toISO(),
		newYork: t.setZone("America/New_York").toFormat("yyyy-MM-dd hh:mm a ZZ"),
		format: t.toFormat("cccc, d LLLL yyyy 'week' W"),
		local: t.toLocaleString(DateTime.DATE_FULL),
		parsed: DateTime.fromFormat("23 Feb 2026 14:05", "d LLL yyyy HH:mm", { zone: "Asia/Tokyo" }).toUTC().toISO(),
		plus: t.plus({ months: 2, days: 3 }).endOf("month").toISODate(),
		dst: DateTime.fromISO("2026-03-29T01:30", { zone: "Europe/Berlin" }).plus({ hours: 1 }).toISO(),
		diff: t.diff(DateTime.fromISO("2025-01-15T00:00Z"), ["years", "months", "days", "hours"]).toObject(),
		duration: Duration.fromISO("P1DT2H3M").toFormat("hh:mm"),
		interval: Interval.fromDateTimes(t, t.plus({ weeks: 1 })).splitBy({ days: 3 }).length,
		invalid: DateTime.fromISO("2026-13-01").invalidReason,
	};
}
