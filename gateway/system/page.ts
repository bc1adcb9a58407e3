/**
 * The pages for browsers, as they were built, and what they load below `/assets/`.
 *
 * Source: decisions of all services, "/".
 */
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Representation, represented } from "#gateway/representation.ts"
import type { PagePath } from "#schemas/system/page.ts"

type Request = HttpServerRequest.HttpServerRequest

export interface PageFile extends Representation {
  /** Its Content-Type. */
  readonly type: string
}

export interface Pages {
  /** Of the services that are served here. */
  readonly html: ReadonlyMap<PagePath, PageFile>
  /** By file name; a name says what is in the file, so that it never changes. */
  readonly assets: ReadonlyMap<string, PageFile>
}

/** Everything comes from here, nothing stands in the page itself, and no other page frames it. */
const page_policy = {
  "content-security-policy":
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
    "object-src 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
}

/** It is asked for again each time, and names the files that it was built with. */
const of_html = { ...page_policy, "cache-control": "no-cache", vary: "accept, accept-encoding" }
const of_asset = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'",
  "cache-control": "public, max-age=31536000, immutable",
}

/** Undefined where its service is not served here, or the page not built. */
export const pageOf = (
  request: Request,
  pages: Pages | undefined,
  path: PagePath,
): HttpServerResponse.HttpServerResponse | undefined => {
  const file = pages?.html.get(path)
  return file && represented(request, file, file.type, of_html)
}

/** Undefined where the pages have no file of this name. */
export const assetOf = (
  request: Request,
  pages: Pages | undefined,
  name: string,
): HttpServerResponse.HttpServerResponse | undefined => {
  const file = pages?.assets.get(name)
  return file && represented(request, file, file.type, of_asset)
}
