/** Exit codes of commands over HTTP; a test compares docs/guide-client.md with this table. */

export const exit_codes = {
  ok: [0, "done"],
  refused: [1, "the server rejected the request: 400, 405, 413, 415, 422, 429 or a redirection"],
  usage: [2, "the command line or the configuration is invalid; no change was requested"],
  unreachable: [3, "no response: connection refused, unknown host, TLS error or connection lost"],
  not_found: [4, "not found: 404"],
  forbidden: [5, "no token, an unknown token, or a token without the permission: 401, 403"],
  failed: [6, "the server failed: 500 and above, for 503 and 504 after retries"],
  conflict: [7, "the state of the resource does not allow it: 409, 412"],
  job_failed: [8, "the job that the command waited for failed"],
  damaged: [9, "the downloaded bytes do not match the checksum; no file is kept"],
  interrupted: [130, "interrupted by Ctrl-C"],
} as const satisfies Readonly<Record<string, readonly [number, string]>>

export type Ending = keyof typeof exit_codes

/** The ending for a status of 300 or above. */
export const endingOf = (status: number): Ending => {
  if (status === 401 || status === 403) return "forbidden"
  if (status === 404 || status === 410) return "not_found"
  if (status === 409 || status === 412) return "conflict"
  return status >= 500 ? "failed" : "refused"
}
