/**
 * Requests whose head can mean two things: no Host, two Hosts, or a framing that HTTP/1.0 does not
 * have. Node's parser lets them through, or refuses them without an envelope. Each is answered 400
 * and its connection closes, so that nothing behind it is read as another request.
 *
 * Source: RFC 9112 §3.2 and §6.1.
 */
import type { IncomingMessage, Server } from "node:http"
import type { Handler } from "../handler.ts"
import { inFront } from "../request-front.ts"
import { answerBroken } from "./broken-answer.ts"

const no_host = "The request has no Host header, which HTTP/1.1 asks for."
const two_hosts = "The request has more than one Host header: send exactly one."
const chunked_in_1_0 =
  "HTTP/1.0 has no Transfer-Encoding: send a Content-Length, or speak HTTP/1.1."

/** Node keeps the first of several Host headers in `headers`, and all of them here. */
const hasTwoHosts = ({ rawHeaders }: IncomingMessage) => {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ""
    if (name.length === 4 && name.toLowerCase() === "host") hosts++
  }
  return hosts > 1
}

/** Why this head is refused; undefined where it means one thing. */
const problemOf = (request: IncomingMessage): string | undefined => {
  const { httpVersion, headers } = request
  if (headers.host === undefined && httpVersion === "1.1") return no_host
  if (httpVersion === "1.0" && headers["transfer-encoding"] !== undefined) return chunked_in_1_0
  return hasTwoHosts(request) ? two_hosts : undefined
}

/** Comes before the present listener; the server must not require a Host by itself. */
export const requireFraming = (server: Server, { broken }: Pick<Handler, "broken">) => {
  inFront(server, (plain) => (request, response) => {
    const detail = problemOf(request)
    if (detail === undefined) return plain(request, response)
    const { method = "", url = "" } = request
    answerBroken(response, broken(method, url, { status: 400, detail }))
  })
}
