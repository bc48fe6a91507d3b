// matching returns the entries whose names have all words, those that begin with the first one first.
export function matching<T extends { name: string }>(all: T[], words: string): T[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((e) => wanted.every((w) => e.name.toLowerCase().includes(w)));
  const starts = (e: T) => (e.name.toLowerCase().startsWith(wanted[0] ?? "") ? 0 : 1);
  return found.sort((a, b) => starts(a) - starts(b)).slice(0, 50);
}
