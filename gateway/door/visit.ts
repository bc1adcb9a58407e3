/** One request on its way through the door, and how its answer is worded. */
import { HttpBody, HttpServerResponse } from "effect/http"
import { isOpen } from "#gateway/access.ts"
import { correlationId } from "#gateway/door/admission.ts"
import { visitHeaders } from "#gateway/door/caching.ts"
import { corsHeaders } from "#gateway/door/cors.ts"
import type { InFlight } from "#gateway/door/deadlines.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import { dashboard, type Edge, type Envelope, envelopeOf, type Failure } from "#gateway/envelope.ts"
import { url_length_max } from "#gateway/limits.ts"
import type { Found, Route } from "#gateway/routes.ts"

type Response = HttpServerResponse.HttpServerResponse

/** A request as it arrived. `source` is the server's own object. */
export interface Incoming {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: { readonly [name: string]: string | undefined }
  readonly source: object
}

/** One request on its way through. */
export interface Visit<Request extends Incoming = Incoming> {
  readonly request: Request
  readonly path: string
  readonly found: Found | undefined
  readonly envelope: Envelope
  readonly edge: Edge
  readonly correlation_id: string
  /** Headers of every answer to it. */
  readonly headers: Readonly<Record<string, string>>
  readonly in_flight: InFlight
}

const no_such_path: Failure = { status: 404, detail: "No such path." }
export const url_too_long: Failure = {
  status: 414,
  detail: `The URL is longer than ${url_length_max} characters.`,
}
const bad_escape: Failure = { status: 400, detail: "The path has a malformed percent-escape." }

export const pathOf = (url: string) => {
  const end = url.indexOf("?")
  return end === -1 ? url : url.slice(0, end)
}

/** Whether the percent-escapes of a path are valid UTF-8. */
const isEscaped = (path: string) => {
  if (!path.includes("%")) return true
  try {
    return decodeURIComponent(path) !== ""
  } catch {
    return false
  }
}

export const isRoute = (
  found: Found | undefined,
): found is Extract<Found, { readonly route: Route }> => found !== undefined && "route" in found

/** Finds the route of a request; undefined where there is none or the URL itself is malformed. */
export const routeOf = ({ find }: Pick<DoorParts, "find">, method: string, url: string) => {
  const path = pathOf(url)
  return url.length <= url_length_max && isEscaped(path) ? find(method, path) : undefined
}

/** Ends a visit that is late: at once, or, while its body is still arriving, with an answer. */
export interface Ending<Request extends Incoming> {
  readonly interrupt: () => void
  readonly giveUp: (visit: Visit<Request>) => void
}

/** Gives a request its ids and its deadline. */
export const arrive = <Request extends Incoming>(
  parts: DoorParts,
  request: Request,
  found: Found | undefined,
  { interrupt, giveUp }: Ending<Request>,
  request_id: string = parts.transport.newId(),
): Visit<Request> => {
  const path = pathOf(request.url)
  const correlation_id = correlationId(request.headers, request_id)
  const envelope = isRoute(found) ? found.route.envelope : envelopeOf(path)
  const visit: Visit<Request> = {
    request,
    path,
    found,
    envelope,
    edge: { request_id, error: parts.settings().error },
    correlation_id,
    headers: {
      "x-request-id": request_id,
      "x-correlation-id": correlation_id,
      ...envelope.headers(request_id),
      ...(envelope === dashboard && corsHeaders(request, parts.settings())),
    },
    in_flight: parts.in_flight.add({
      interrupt,
      source: request.source,
      is_streamed: isRoute(found) && found.route.is_streamed,
      is_unhurried: isRoute(found) && found.route.is_unhurried,
      giveUp: () => giveUp(visit),
    }),
  }
  return visit
}

/** The headers that the door adds to an answer. */
export const addedHeaders = (
  { settings }: Pick<DoorParts, "settings">,
  { found, headers }: Pick<Visit, "found" | "headers">,
  answer: { readonly status: number; readonly headers: Readonly<Record<string, string>> },
) => visitHeaders(headers, isRoute(found) && !isOpen(found.route, settings()), answer)

/** The failure of a request whose path or method is unknown. */
export const misdirected = ({ request, path, found, envelope }: Visit): Failure => {
  if (request.url.length > url_length_max) return url_too_long
  if (!isEscaped(path)) return bad_escape
  if (found === undefined || isRoute(found)) return no_such_path
  const allow = found.allow.join(", ")
  const detail = `${request.method} is not answered here, but ${allow}.`
  return { status: envelope.wrong_method, detail, headers: { allow } }
}

/** The answer to a failure, in the words of the path's service. */
export const worded = (
  { envelope, edge }: Pick<Visit, "envelope" | "edge">,
  failure: Failure,
): Response => {
  const { status, headers = {} } = failure
  const response = HttpServerResponse.jsonUnsafe(envelope.body(failure, edge), { status, headers })
  own.add(response)
  return response
}

/** Answers that the door has worded itself: nothing is left to fill in. */
const own = new WeakSet<Response>()

/** Headers that go with the body that is replaced. */
const of_the_body = new Set(["content-type", "content-length"])

/** Texts for answers that a router sends without a body. */
const silent: Readonly<Record<number, string>> = {
  413: "The request body is too large.",
  415: "The request body has a type that is not read here.",
}

/** Fills in what a handler's rejection leaves open, and words what the router leaves bare. */
export const whole = (visit: Pick<Visit, "envelope" | "edge">, response: Response): Response => {
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
