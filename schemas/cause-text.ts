/** What was thrown, in its own words: an error's message, or whatever else it is as text. */
export const causeText = (cause: unknown): string =>
  cause instanceof Error ? cause.message : String(cause)
