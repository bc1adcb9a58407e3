/** Parses Retry-After. Source: RFC 9110 §10.2.3. */

/** Milliseconds of a Retry-After in seconds or as a date; undefined if invalid. */
export const retryAfterOf = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  const text = header.trim()
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const date = /^[A-Z][a-z]{2},/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isFinite(date) ? Math.max(0, date - now) : undefined
}
