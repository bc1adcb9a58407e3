/** The answer to a request that goes no further, as Node's response. */
import type { ServerResponse } from "node:http"
import type { Broken } from "../handler.ts"

/** Answers with it; the connection ends, and a body that is still to come is not read. */
export const answerBroken = (
  response: ServerResponse,
  { status, request_id, body }: Broken,
  more: Readonly<Record<string, string>> = {},
) => {
  response.shouldKeepAlive = false
  const text = JSON.stringify(body)
  response.writeHead(status, {
    "content-type": "application/json",
    "cache-control": "no-store",
    "content-length": Buffer.byteLength(text),
    "x-request-id": request_id,
    ...more,
  })
  response.end(text)
}
