/**
 * Returns the first language of an Accept-Language header that is known, or the
 * first known language if there is none.
 */
export function pick(header, known) {
  const wanted = header
    .split(",")
    .map((part) => part.trim().split(";"))
    .map(([tag, q]) => ({ language: tag.toLowerCase().split("-")[0], weight: q ? Number(q.trim().slice(2)) : 1 }))
    .sort((a, b) => b.weight - a.weight)
    .map(({ language }) => language);
  return wanted.find((language) => known.includes(language)) ?? known[0];
}
