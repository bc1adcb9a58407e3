/** Exit codes of commands over HTTP; a test compares docs/guide-client.md with this table. */

export const exit_codes = {
  ok: [0, "done"],
  refused: [1, "the server refused: 400, 405, 413, 415, 422, 429, a redirection"],
  usage: [2, "the command line or the configuration is wrong; nothing was sent"],
  unreachable: [3, "no answer: nothing listens, no such host, TLS, the connection broke"],
  not_found: [4, "it is not there: 404"],
  forbidden: [5, "no token, one that is not known, or one that may not: 401, 403"],
  failed: [6, "the server could not: 500 and above, after the retries of 503 and 504"],
  conflict: [7, "its state does not allow it: 409, 412"],
  job_failed: [8, "the job that was waited for ended in error"],
  damaged: [9, "the bytes that came are not those of the blob; nothing is kept"],
  interrupted: [130, "stopped by Ctrl-C"],
} as const satisfies Readonly<Record<string, readonly [number, string]>>

export type Ending = keyof typeof exit_codes

/** The ending for a status of 300 or above. */
export const endingOf = (status: number): Ending => {
  if (status === 401 || status === 403) return "forbidden"
  if (status === 404 || status === 410) return "not_found"
  if (status === 409 || status === 412) return "conflict"
  return status >= 500 ? "failed" : "refused"
}
