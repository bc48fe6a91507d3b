import dayjs from "dayjs";
import "dayjs/locale/de.js";
import customParseFormat from "dayjs/plugin/customParseFormat.js";
import duration from "dayjs/plugin/duration.js";
import relativeTime from "dayjs/plugin/relativeTime.js";
import timezone from "dayjs/plugin/timezone.js";
import utc from "dayjs/plugin/utc.js";

for (const plugin of [utc, timezone, duration, relativeTime, customParseFormat]) dayjs.extend(plugin);

export default async function () {
	const t = dayjs.utc("2026-07-01T12:00:00Z");
	return {
		berlin: t.tz("Europe/Berlin").format("YYYY-MM-DD HH:mm Z"),
		newYork: dayjs.utc("2026-01-01T12:00:00Z").tz("America/New_York").format(),
		parsed: dayjs.tz("2026-03-29 03:30", "Europe/Berlin").toISOString(),
		custom: dayjs.utc("05/02/69 1:02:03 PM -05:00", "MM/DD/YY H:mm:ss A Z").toISOString(),
		german: t.locale("de").format("dddd, D. MMMM YYYY"),
		relative: t.from(t.add(3, "day")),
		duration: dayjs.duration(((26 * 60 + 3) * 60 + 4) * 1000).format("D [d] HH:mm:ss"),
		diff: t.diff(t.subtract(17, "month"), "month", true),
	};
}
