/** A request inside the door: its route, its ids and its deadline. */

import type { InFlight } from "#gateway/door/deadlines.ts"
import type { DoorParts } from "#gateway/door/parts.ts"
import { corsHeaders } from "#gateway/door/response-headers.ts"
import { dashboard, type Edge, type Envelope, envelopeOf } from "#gateway/envelope.ts"
import { correlation_id_length_max, url_length_max } from "#gateway/limits.ts"
import { type Found, isRoute } from "#gateway/routes.ts"

/** A request as it arrived. `source` is the server's own object. */
export interface Incoming {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: { readonly [name: string]: string | undefined }
  readonly source: object
}

/** A request inside the door. */
export interface Visit<Request extends Incoming = Incoming> {
  readonly request: Request
  readonly path: string
  readonly found: Found | undefined
  readonly envelope: Envelope
  readonly edge: Edge
  readonly correlation_id: string
  /** Headers of every response to it. */
  readonly headers: Readonly<Record<string, string>>
  readonly in_flight: InFlight
}

export const pathOf = (url: string) => {
  const end = url.indexOf("?")
  return end === -1 ? url : url.slice(0, end)
}

/** Whether the percent-escapes of a path are valid UTF-8. */
export const isEscaped = (path: string) => {
  if (!path.includes("%")) return true
  try {
    return decodeURIComponent(path) !== ""
  } catch {
    return false
  }
}

/** Finds the route of a request; undefined if there is none or the URL is malformed. */
export const routeOf = ({ find }: Pick<DoorParts, "find">, method: string, url: string) => {
  const path = pathOf(url)
  return url.length <= url_length_max && isEscaped(path) ? find(method, path) : undefined
}

const unprintable = /[^\x21-\x7e]/g

/** Copies the beginning of a text: a slice would keep the whole text in memory. */
const beginningOf = (text: string, length: number) =>
  text.length > length ? structuredClone(text.slice(0, length)) : text

/** The caller's request id, printable and bounded; otherwise the generated one. */
export const correlationId = (headers: Incoming["headers"], request_id: string) => {
  const request_header = beginningOf(headers["x-request-id"] ?? "", correlation_id_length_max)
  return request_header.replaceAll(unprintable, "") || request_id
}

/**
 * Ends a visit past its deadline: `interrupt` at once, `giveUp` with a response while its body is
 * arriving.
 */
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
      ...envelope.headers?.(request_id),
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
