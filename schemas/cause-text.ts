/** The reason in a thrown value: an error's message, or its `detail` if it has no message. */
export const causeText = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  return cause.message === "" && "detail" in cause ? String(cause.detail) : cause.message
}
