/**
 * Rejects ambiguous request heads: no Host, two Hosts, or a framing that HTTP/1.0 does not support.
 * Node's parser accepts them, or rejects them without an envelope. Each gets 400, and its
 * connection is closed, so that nothing after it is parsed as another request.
 *
 * Source: RFC 9112 §3.2 and §6.1.
 */
import type { IncomingMessage, Server } from "node:http"
import type { Handler } from "../handler.ts"
import { intercept } from "../intercept.ts"
import { sendErrorResponse } from "./error-response.ts"

const no_host = "The request has no Host header, which HTTP/1.1 requires."
const two_hosts = "The request has more than one Host header: send exactly one."
const chunked_in_1_0 = "HTTP/1.0 has no Transfer-Encoding: send a Content-Length, or use HTTP/1.1."

/** `headers` has only the first of several Host headers; `rawHeaders` has all. */
const hasTwoHosts = ({ rawHeaders }: IncomingMessage) => {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ""
    if (name.length === 4 && name.toLowerCase() === "host") hosts++
  }
  return hosts > 1
}

/** Why this head is rejected; undefined if it is unambiguous. */
const problemOf = (request: IncomingMessage): string | undefined => {
  const { httpVersion, headers } = request
  if (headers.host === undefined && httpVersion === "1.1") return no_host
  if (httpVersion === "1.0" && headers["transfer-encoding"] !== undefined) return chunked_in_1_0
  return hasTwoHosts(request) ? two_hosts : undefined
}

/** Rejects ambiguous requests. The server must not require a Host header itself. */
export const requireFraming = (
  server: Server,
  { errorResponse }: Pick<Handler, "errorResponse">,
) => {
  intercept(server, (next) => (request, response) => {
    const detail = problemOf(request)
    if (detail === undefined) return next(request, response)
    const { method = "", url = "" } = request
    sendErrorResponse(response, errorResponse(method, url, { status: 400, detail }))
  })
}
