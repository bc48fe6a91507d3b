// Numbers, times and sizes as the console shows them.
const locale = "en-GB";

export const count = (n: number) => n.toLocaleString(locale);

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
  return `${Math.floor(ms / 86_400_000)} d ${Math.round((ms % 86_400_000) / 3_600_000)} h`;
}

export function bytes(n: number): string {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const) if (n >= size) return `${(n / size).toFixed(1)} ${unit}`;
  return `${n} B`;
}

export function relative(ms: number, now: number): string {
  const past = now - ms;
  const size = Math.abs(past);
  if (size < 1_500) return "now";
  let amount = `${Math.round(size / 1_000)} s`;
  if (size >= 86_400_000 * 2) amount = `${Math.floor(size / 86_400_000)} d`;
  else if (size >= 3_600_000 * 2) amount = `${Math.floor(size / 3_600_000)} h`;
  else if (size >= 60_000) amount = `${Math.floor(size / 60_000)} min`;
  return past >= 0 ? `${amount} ago` : `in ${amount}`;
}

const moment = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
export const absolute = (ms: number) => moment.format(ms);

const pad = (n: number, digits: number) => String(n).padStart(digits, "0");
export function clock(ms: number): string {
  const d = new Date(ms);
  return `${pad(d.getHours(), 2)}:${pad(d.getMinutes(), 2)}:${pad(d.getSeconds(), 2)}.${pad(d.getMilliseconds(), 3)}`;
}

export const percent = (part: number, whole: number) => (whole === 0 ? "0 %" : `${((100 * part) / whole).toFixed(part === 0 || part === whole ? 0 : 1)} %`);

// pretty returns a JSON value as text with lines.
export const pretty = (value: unknown) => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2));

// quoted returns a text as one word of a POSIX shell.
export const quoted = (word: string) => (/^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

export const short = (id: string) => id.slice(0, 8) + "…" + id.slice(-4);
