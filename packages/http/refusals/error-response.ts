/** Sends the response to a rejected request. */
import type { ServerResponse } from "node:http"
import type { ErrorResponse } from "../handler.ts"

/** Sends the response and closes the connection, without reading the rest of the body. */
export const sendErrorResponse = (
  response: ServerResponse,
  { status, request_id, body }: ErrorResponse,
  extra_headers: Readonly<Record<string, string>> = {},
) => {
  response.shouldKeepAlive = false
  const text = JSON.stringify(body)
  response.writeHead(status, {
    "content-type": "application/json",
    "cache-control": "no-store",
    "content-length": Buffer.byteLength(text),
    "x-request-id": request_id,
    ...extra_headers,
  })
  response.end(text)
}
