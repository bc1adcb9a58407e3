/**
 * The built pages, their assets at `/assets/`, and a fallback page at `/`.
 *
 * Source: decisions of all services, "/".
 */
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Representation, represented } from "#gateway/representation.ts"
import { plainPage } from "#gateway/system/plain-page.ts"
import { type PagePath, pages, pagesOf } from "#schemas/system/page.ts"

type Request = HttpServerRequest.HttpServerRequest

export interface PageFile extends Representation {
  /** Its Content-Type. */
  readonly type: string
}

export interface Pages {
  /** Pages of the services that this process serves. */
  readonly html: ReadonlyMap<PagePath, PageFile>
  /** By file name. Names contain a hash of the content, so files never change. */
  readonly assets: ReadonlyMap<string, PageFile>
}

/** Pages load everything from this origin, have no inline scripts, and cannot be framed. */
const page_policy = {
  "content-security-policy":
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
    "object-src 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
}

/** A page refers to the assets of its build, so caches must revalidate it each time. */
const of_html = { ...page_policy, "cache-control": "no-cache", vary: "accept, accept-encoding" }
const of_asset = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'",
  "cache-control": "public, max-age=31536000, immutable",
}

/** A page; undefined if this process does not serve its service, or the page is not built. */
export const pageOf = (
  request: Request,
  built: Pages | undefined,
  path: PagePath,
): HttpServerResponse.HttpServerResponse | undefined => {
  const file = built?.html.get(path)
  return file && represented(request, file, file.type, of_html)
}

/** An asset of the pages; undefined if there is none of this name. */
export const assetOf = (
  request: Request,
  built: Pages | undefined,
  name: string,
): HttpServerResponse.HttpServerResponse | undefined => {
  const file = built?.assets.get(name)
  return file && represented(request, file, file.type, of_asset)
}

/** The quality of a media type; undefined if the header does not name it. */
const namedQuality = (accept: string, type: string) => {
  const parts = accept.split(",").map((part) => part.trim().split(/\s*;\s*/))
  const found = parts.find(([name]) => name === type)
  if (found === undefined) return undefined
  const quality = found.find((parameter) => parameter.startsWith("q="))
  return quality === undefined ? 1 : Number(quality.slice(2)) || 0
}

const qualityOf = (accept: string, type: string) => namedQuality(accept, type) ?? 0

/** Whether the client accepts HTML: by default, unless its header excludes it. */
export const takesHtml = (accept = "*/*") => {
  const named = ["text/html", "text/*", "*/*"].map((type) => namedQuality(accept, type))
  return (named.find((quality) => quality !== undefined) ?? 0) > 0
}

/** Whether the client prefers HTML to JSON, as browsers do. */
export const prefersHtml = (accept = "") =>
  qualityOf(accept, "text/html") > qualityOf(accept, "application/json")

const lineOf = (built: ReadonlySet<string>) => (name: string) => {
  const page = pages.find(({ service }) => service === name)
  const is_built = page !== undefined && built.has(page.path)
  return is_built ? `<li><a href="${page.path}">${name}</a></li>` : `<li>${name}</li>`
}

const not_built = "<p>The pages are not built yet. <code>npm start</code> builds them.</p>"

const hasPage = (name: string) => pages.some(({ service }) => service === name)

/** The page at `/` if this process does not serve the dashboard or its page is not built. */
export const home = (services: ReadonlyArray<string>, built: ReadonlySet<string>) =>
  plainPage({
    title: "Almanac",
    body: `<p>Services on this server:</p>
<ul>${services.map(lineOf(built)).join("")}</ul>
${built.size === 0 && services.some(hasPage) ? not_built : ""}
<p>API: <a href="/docs">reference</a>, <a href="/openapi.json">OpenAPI</a>,
<a href="/asyncapi.json">AsyncAPI</a>. Status: <a href="/readyz">readiness</a>.</p>`,
    services,
    status: 200,
  })

/** Why a page is missing. */
export const missingPage = (path: PagePath, services: ReadonlyArray<string>) => {
  const page = pagesOf(services).find((page) => page.path === path)
  if (page !== undefined) return `The page ${path} is not built yet. npm start builds it.`
  const service = pages.find((page) => page.path === path)?.service
  return (
    `The page ${path} needs the service ${service}, which is disabled on this server. ` +
    "The setting services (ALMANAC_SERVICES) enables it."
  )
}
