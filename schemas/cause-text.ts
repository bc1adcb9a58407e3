/** What was thrown, in words: some errors of ours say it as `detail` and have no message. */
export const causeText = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  return cause.message === "" && "detail" in cause ? String(cause.detail) : cause.message
}
