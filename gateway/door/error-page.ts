/**
 * Error responses as HTML pages, for browsers. A client gets them if it prefers HTML to JSON, as
 * for `/`; all other clients get the envelope of the path.
 */
import { HttpServerResponse } from "effect/http"
import type { Visit } from "#gateway/door/visit.ts"
import { prefersHtml } from "#gateway/system/pages.ts"
import { escapeHtml, plainPage } from "#gateway/system/plain-page.ts"

type Response = HttpServerResponse.HttpServerResponse

const titles: Readonly<Record<number, string>> = {
  400: "Bad request",
  401: "Token required",
  403: "Access denied",
  404: "Not found",
  405: "Method not allowed",
  408: "Request timeout",
  413: "Request too large",
  414: "Address too long",
  415: "Unsupported media type",
  429: "Too many requests",
  500: "Internal error",
  501: "Method not implemented",
  503: "Service unavailable",
  504: "Request timeout",
}

/** The next step for the reader, as HTML. */
const next_steps: Readonly<Record<number, string>> = {
  401:
    "Send a token in the <code>Authorization</code> header. A browser does not send one when it " +
    'opens an address. <a href="/docs">How to authenticate</a>',
  404: 'All operations are in the <a href="/docs">API reference</a>.',
  405: 'The methods of each path are in the <a href="/docs">API reference</a>.',
  429: "Wait, then try again.",
  500: "The server's log has the cause. Search it for the request id.",
  501: 'The methods of each path are in the <a href="/docs">API reference</a>.',
  503: 'Try again later. <a href="/readyz">Which services are ready</a>',
  504: "Try again later.",
}

/** The text of an error in each envelope. Source: documents 1 to 3, §7. */
const detailOf = (text: string) => {
  const body: unknown = JSON.parse(text)
  const texts = ["detail", "error"].map((name) => Reflect.get(Object(body), name))
  return texts.find((one): one is string => typeof one === "string") ?? ""
}

const paragraph = (html: string | undefined) => (html ? `<p>${html}</p>` : "")

/** The response as an HTML page if it is an error and the client prefers HTML. */
export const errorForBrowser = (
  { request, path, edge }: Pick<Visit, "request" | "path" | "edge">,
  response: Response,
  services: ReadonlyArray<string>,
): Response => {
  const { status, body, headers } = response
  if (status < 400 || body._tag !== "Uint8Array" || !prefersHtml(request.headers.accept)) {
    return response
  }
  if (!body.contentType.startsWith("application/json")) return response
  const detail = detailOf(body.text ?? new TextDecoder().decode(body.body))
  const html = [
    `<p><code>${escapeHtml(`${request.method} ${path}`)}</code></p>`,
    paragraph(escapeHtml(detail)),
    paragraph(next_steps[status]),
    `<p><small>Status ${status}, request id <code>${edge.request_id}</code></small></p>`,
  ]
  const title = titles[status] ?? `Error ${status}`
  const page = plainPage({ title, body: html.join("\n"), services, status })
  const kept = Object.entries(headers).filter(([name]) => !Object.hasOwn(page.headers, name))
  return HttpServerResponse.setHeaders(page, Object.fromEntries(kept))
}
