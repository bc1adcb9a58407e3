/**
 * The Host header, without which a request of HTTP/1.1 goes no further. Node would say so itself,
 * but without an envelope. Source: RFC 9112 §3.2.
 */
import type { IncomingMessage, Server } from "node:http"
import type { FrontDoor } from "#gateway/front-door.ts"
import { answerBroken } from "./broken-answer.ts"
import { inFront } from "./request-front.ts"

/** Where requests come in that wait for no other protocol. */
const events = ["request", "checkContinue"] as const

const no_host = {
  status: 400,
  detail: "The request has no Host header, which HTTP/1.1 asks for.",
} as const

const lacksHost = ({ httpVersion, headers }: IncomingMessage) =>
  httpVersion === "1.1" && headers.host === undefined

/** Comes before whoever took requests until now; the server must not require it by itself. */
export const requireHost = (server: Server, { broken }: Pick<FrontDoor, "broken">) => {
  for (const event of events) {
    inFront(server, event, (plain) => (request, response) => {
      if (!lacksHost(request)) return plain(request, response)
      const { method = "", url = "" } = request
      answerBroken(response, broken(method, url, no_host))
    })
  }
}
