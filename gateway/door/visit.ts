/** One request on its way through the front door, and how what it is answered is worded. */
import type { Fiber } from "effect"
import { HttpBody, type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { InFlight } from "#gateway/door/deadlines.ts"
import type { Edge, Envelope, Failure } from "#gateway/envelope.ts"
import { url_length_max } from "#gateway/limits.ts"
import type { Found, Route } from "#gateway/routes.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** One request on its way through. */
export interface Visit {
  readonly request: Request
  readonly path: string
  readonly found: Found | undefined
  readonly envelope: Envelope
  readonly edge: Edge
  readonly correlation_id: string
  /** Of every answer to it. */
  readonly headers: Readonly<Record<string, string>>
  readonly in_flight: InFlight
  readonly fiber: Fiber.Fiber<unknown, unknown>
}

const no_such_path: Failure = { status: 404, detail: "No such path." }
export const url_too_long: Failure = {
  status: 414,
  detail: `The URL is longer than ${url_length_max} characters.`,
}
const bad_escape: Failure = { status: 400, detail: "The path has a malformed percent-escape." }
export const bad_key: Failure = {
  status: 400,
  detail: "Idempotency-Key must be 1 to 255 printable ASCII characters.",
}
export const bad_position: Failure = {
  status: 400,
  detail: "X-Almanac-Position must be a position.",
}

export const pathOf = (url: string) => {
  const end = url.indexOf("?")
  return end === -1 ? url : url.slice(0, end)
}

/** Whether what is percent-escaped in it is text. */
export const isEscaped = (path: string) => {
  if (!path.includes("%")) return true
  try {
    return decodeURIComponent(path) !== ""
  } catch {
    return false
  }
}

export const isRoute = (found: Found | undefined): found is { readonly route: Route } =>
  found !== undefined && "route" in found

/** What is wrong with the address itself. */
export const misdirected = ({ request, path, found, envelope }: Visit): Failure => {
  if (request.url.length > url_length_max) return url_too_long
  if (!isEscaped(path)) return bad_escape
  if (found === undefined || isRoute(found)) return no_such_path
  const allow = found.allow.join(", ")
  const detail = `${request.method} is not answered here, but ${allow}.`
  return { status: envelope.wrong_method, detail, headers: { allow } }
}

/** The answer to a failure, in the words of the path's service. */
export const worded = ({ envelope, edge }: Visit, failure: Failure): Response => {
  const { status, headers = {} } = failure
  const response = HttpServerResponse.jsonUnsafe(envelope.body(failure, edge), { status, headers })
  own.add(response)
  return response
}

/** Answers that the door has worded itself: nothing is left to fill in. */
const own = new WeakSet<Response>()

/** Headers that go with the body that is replaced. */
const of_the_body = new Set(["content-type", "content-length"])

/** What a router says without words. */
const silent: Readonly<Record<number, string>> = {
  413: "The request body is too large.",
  415: "The request body has a type that is not read here.",
}

/** Fills in what a handler's rejection leaves open, and words what the router leaves bare. */
export const whole = (visit: Visit, response: Response): Response => {
  if (response.status < 400 || own.has(response)) return response
  const { envelope, edge } = visit
  const { body, status } = response
  const is_json = body._tag === "Uint8Array" && body.contentType.startsWith("application/json")
  // The router says this one in plain text; a service that says it itself says it in its own words.
  if (body._tag === "Empty" || (status === 415 && !is_json)) {
    const bare = worded(visit, { status, detail: silent[status] ?? "" })
    const kept = Object.entries(response.headers).filter(([name]) => !of_the_body.has(name))
    return HttpServerResponse.setHeaders(bare, Object.fromEntries(kept))
  }
  if (body._tag !== "Uint8Array" || !is_json) return response
  const rejection: unknown = JSON.parse(body.text ?? new TextDecoder().decode(body.body))
  // An error's body is an object in each envelope.
  const completed = envelope.complete(rejection as Readonly<Record<string, unknown>>, edge)
  return HttpServerResponse.setBody(
    response,
    HttpBody.text(JSON.stringify(completed), "application/json"),
  )
}
