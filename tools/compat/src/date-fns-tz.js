import { formatInTimeZone, fromZonedTime, getTimezoneOffset, toZonedTime } from "date-fns-tz";

export default async function () {
	const summer = new Date("2026-07-01T12:00:00Z");
	const winter = new Date("2026-01-01T12:00:00Z");
	return {
		berlin: [summer, winter].map((d) => formatInTimeZone(d, "Europe/Berlin", "yyyy-MM-dd HH:mm:ss XXX")),
		newYork: [summer, winter].map((d) => formatInTimeZone(d, "America/New_York", "yyyy-MM-dd hh:mm aaa xxx")),
		utc: fromZonedTime("2026-03-29 03:30:00", "Europe/Berlin").toISOString(),
		zoned: toZonedTime(summer, "Asia/Kolkata").getHours(),
		offset: getTimezoneOffset("Asia/Tokyo", winter) / 3600000,
		name: formatInTimeZone(winter, "America/Los_Angeles", "zzz"),
	};
}
