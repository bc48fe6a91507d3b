import { addMonths, differenceInCalendarDays, eachWeekOfInterval, format, formatDistance, formatISO, intervalToDuration, isValid, parse, parseISO, startOfWeek } from "date-fns";
import { de } from "date-fns/locale/de";

export default async function () {
	const d = new Date(2026, 0, 31, 13, 5, 9);
	return {
		format: format(d, "EEEE, do MMMM yyyy 'at' hh:mm:ss aaa"),
		german: format(d, "EEEE, d. MMMM yyyy", { locale: de }),
		plus: format(addMonths(d, 1), "yyyy-MM-dd"),
		distance: formatDistance(new Date(2026, 5, 1), d, { addSuffix: true }),
		germanDistance: formatDistance(new Date(2025, 5, 1), d, { addSuffix: true, locale: de }),
		parsed: formatISO(parse("02/11/2014 7pm", "MM/dd/yyyy haaa", new Date(0))),
		days: differenceInCalendarDays(parseISO("2026-03-01"), parseISO("2026-02-01")),
		weeks: eachWeekOfInterval({ start: d, end: addMonths(d, 1) }, { weekStartsOn: 1 }).map((w) => format(w, "II")),
		duration: intervalToDuration({ start: new Date(2020, 1, 29), end: d }),
		valid: isValid(parse("31/31/2020", "MM/dd/yyyy", new Date(0))),
		week: format(startOfWeek(d), "yyyy-MM-dd"),
	};
}
