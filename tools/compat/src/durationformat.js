import { DurationFormat } from "@formatjs/intl-durationformat";

const locales = ["en", "de", "ja", "ar", "fr", "pt-BR", "fi", "da", "ru", "zh-Hant"];
const styles = [{ style: "long" }, { style: "short" }, { style: "narrow" }, { style: "digital" }, { style: "long", fractionalDigits: 2, milliseconds: "numeric" }, { hours: "2-digit", minutesDisplay: "always" }];
const long = { years: 1, months: 2, weeks: 3, days: 4, hours: 5, minutes: 6, seconds: 7, milliseconds: 8, microseconds: 9, nanoseconds: 10 };

export default async function () {
	const thrown = (f) => {
		try { return f(); } catch (e) { return e.name; }
	};
	return {
		texts: locales.map((l) => [l, ...styles.flatMap((o) => [long, { hours: -1, minutes: -30 }, { seconds: 1 }].map((d) => new DurationFormat(l, o).format(d)))]),
		parts: new DurationFormat("de", { style: "narrow" }).formatToParts({ hours: 1, minutes: 2 }),
		options: new DurationFormat("en", { style: "digital" }).resolvedOptions(),
		mixed: thrown(() => new DurationFormat("en").format({ hours: 1, minutes: -1 })),
		style: thrown(() => new DurationFormat("en", { style: "tiny" })),
	};
}
