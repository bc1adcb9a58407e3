/** The responses to failures and rejections, each in the envelope of its path's service. */
import { HttpBody, HttpServerResponse } from "effect/http"
import { anyOf } from "#gateway/door/any-of.ts"
import { isEscaped, type Visit } from "#gateway/door/visit.ts"
import type { Failure } from "#gateway/envelope.ts"
import { no_such_path } from "#gateway/failure.ts"
import { url_length_max } from "#gateway/limits.ts"
import { isRoute } from "#gateway/routes.ts"

type Response = HttpServerResponse.HttpServerResponse

export const url_too_long: Failure = {
  status: 414,
  detail: `The URL is longer than ${url_length_max} characters.`,
}
const bad_escape: Failure = { status: 400, detail: "The path has a malformed percent-escape." }

/** The failure of a request whose path or method is unknown. */
export const misdirected = ({ request, path, found, envelope }: Visit): Failure => {
  if (request.url.length > url_length_max) return url_too_long
  if (!isEscaped(path)) return bad_escape
  if (found === undefined || isRoute(found)) return no_such_path
  const detail = `${request.method} is not allowed on this path; use ${anyOf(found.allow)}.`
  return { status: envelope.wrong_method, detail, headers: { allow: found.allow.join(", ") } }
}

/** The response to a failure. */
export const failureResponse = (
  { envelope, edge }: Pick<Visit, "envelope" | "edge">,
  failure: Failure,
): Response => {
  const { status, headers = {} } = failure
  const response = HttpServerResponse.jsonUnsafe(envelope.body(failure, edge), { status, headers })
  complete.add(response)
  return response
}

/** Responses created by `failureResponse`, which have complete bodies. */
const complete = new WeakSet<Response>()

/** Headers of a body, removed when the body is replaced. */
const body_headers = new Set(["content-type", "content-length"])

/** Details of errors that a router sends without a body. */
const bare_details: Readonly<Record<number, string>> = {
  413: "The request body is too large.",
  415: "The content type of the request body is not supported by this operation.",
}

/**
 * Completes the body of a handler's rejection, or adds one to an error that the router sends
 * without a body.
 */
export const completeResponse = (
  visit: Pick<Visit, "envelope" | "edge">,
  response: Response,
): Response => {
  if (response.status < 400 || complete.has(response)) return response
  const { envelope, edge } = visit
  const { body, status } = response
  const is_json = body._tag === "Uint8Array" && body.contentType.startsWith("application/json")
  // The router sends 415 as plain text; a service sends its own as JSON.
  if (body._tag === "Empty" || (status === 415 && !is_json)) {
    const bare = failureResponse(visit, { status, detail: bare_details[status] ?? "" })
    const kept_headers = Object.entries(response.headers).filter(
      ([name]) => !body_headers.has(name),
    )
    return HttpServerResponse.setHeaders(bare, Object.fromEntries(kept_headers))
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
