// What the polyfills of Temporal compute: both run the same cases, and agree.
const zones = ["Europe/Berlin", "America/New_York", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Cairo", "Pacific/Apia", "UTC"];

export async function cases(Temporal, Intl) {
	const thrown = (f) => {
		try { return String(f()); } catch (e) { return e.name; }
	};
	const date = Temporal.PlainDate.from("2024-01-31");
	const zoned = (zone, text) => Temporal.PlainDateTime.from(text).toZonedDateTime(zone);
	const gap = (disambiguation) => Temporal.PlainDateTime.from("2024-03-31T02:30").toZonedDateTime("Europe/Berlin", { disambiguation }).toString();
	const instant = Temporal.Instant.from("2024-07-11T18:13:20.123456789Z");
	const long = Temporal.Duration.from({ hours: 130, minutes: 20 });
	return {
		dates: [date.add({ months: 1 }), date.subtract({ years: 4, days: 1 }), date.with({ day: 1 }), date.toPlainYearMonth(), date.toPlainMonthDay()].map(String),
		fields: [date.dayOfWeek, date.weekOfYear, date.yearOfWeek, date.daysInMonth, date.inLeapYear, date.monthCode],
		until: [date.until("2026-03-01", { largestUnit: "years" }), date.since("2000-02-29", { largestUnit: "months" }), date.until("2024-12-25", { largestUnit: "weeks" })].map(String),
		overflow: [thrown(() => date.with({ month: 2 }, { overflow: "reject" })), thrown(() => date.with({ month: 2 })), thrown(() => Temporal.PlainDate.from("2024-02-30")), thrown(() => date > date)],
		zones: zones.map((zone) => instant.toZonedDateTimeISO(zone).toString()),
		days: zones.map((zone) => [zoned(zone, "2024-03-31T00:00").hoursInDay, zoned(zone, "2024-11-03T12:00").startOfDay().toString()]),
		gap: ["compatible", "earlier", "later"].map(gap).concat(thrown(() => gap("reject"))),
		overlap: ["earlier", "later"].map((d) => Temporal.PlainDateTime.from("2024-10-27T02:30").toZonedDateTime("Europe/Berlin", { disambiguation: d }).toString()),
		addition: [zoned("Europe/Berlin", "2024-03-30T12:00").add({ days: 1 }), zoned("Europe/Berlin", "2024-03-30T12:00").add({ hours: 24 })].map(String),
		transition: zoned("America/New_York", "2024-01-01T00:00").getTimeZoneTransition("next").toString(),
		offset: instant.toZonedDateTimeISO("+05:45").toString(),
		durations: [long.round({ largestUnit: "days" }), long.round({ smallestUnit: "hours", roundingMode: "ceil" }), long.negated(), Temporal.Duration.from("P1Y2M10DT2H30M")].map(String),
		total: [long.total("days"), Temporal.Duration.from({ months: 1 }).total({ unit: "days", relativeTo: "2024-02-01" }), Temporal.Duration.compare({ hours: 24 }, { days: 1 })],
		nanoseconds: [instant.epochNanoseconds, instant.add({ nanoseconds: 1 }).epochNanoseconds, instant.round("second").epochMilliseconds].map(String),
		times: [Temporal.PlainTime.from("23:30").add({ hours: 1 }), Temporal.PlainTime.from("10:20:30.5").round({ smallestUnit: "minute", roundingMode: "halfExpand" })].map(String),
		limits: [thrown(() => Temporal.PlainDate.from("+275760-09-14")), thrown(() => new Temporal.Instant(8640000000000000000001n)), thrown(() => Temporal.PlainDate.from({ year: 2024, month: 13, day: 1 }, { overflow: "reject" }))],
		leap: Temporal.PlainDate.from("2024-02-29").add({ years: 1 }).toString(),
		sorted: ["2024-03-01", "1999-12-31", "2024-02-29"].map((d) => Temporal.PlainDate.from(d)).sort(Temporal.PlainDate.compare).map(String),
		json: JSON.stringify({ date, long, instant }),
		now: [Temporal.Now.timeZoneId(), Math.abs(Temporal.Now.instant().epochMilliseconds - Date.now()) < 5000],
		text: ["en-US", "de", "ja", "fr"].map((l) => [date.toLocaleString(l, { dateStyle: "full" }), zoned("Asia/Tokyo", "2024-07-11T09:05").toLocaleString(l, { timeStyle: "short" })]),
		formatted: new Intl.DateTimeFormat("de", { dateStyle: "medium" }).format(date),
	};
}
