/** The page at `/` where the dashboard has none: it is not served here, or not built. */
import { pages } from "#schemas/system/page.ts"

/** Undefined where the header does not name the type. */
const namedQuality = (accept: string, type: string) => {
  const parts = accept.split(",").map((part) => part.trim().split(/\s*;\s*/))
  const found = parts.find(([name]) => name === type)
  if (found === undefined) return undefined
  const quality = found.find((parameter) => parameter.startsWith("q="))
  return quality === undefined ? 1 : Number(quality.slice(2)) || 0
}

const qualityOf = (accept: string, type: string) => namedQuality(accept, type) ?? 0

/** Whether a page will do: what has no other form goes to everybody who does not rule it out. */
export const takesHtml = (accept = "*/*") => {
  const named = ["text/html", "text/*", "*/*"].map((type) => namedQuality(accept, type))
  return (named.find((quality) => quality !== undefined) ?? 0) > 0
}

/** Whether a page is wanted rather than data: a browser says so, other programs do not. */
export const prefersHtml = (accept = "") =>
  qualityOf(accept, "text/html") > qualityOf(accept, "application/json")

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const lineOf = (built: ReadonlySet<string>) => (name: string) => {
  const page = pages.find(({ service }) => service === name)
  const is_there = page !== undefined && built.has(page.path)
  return is_there ? `<li><a href="${page.path}">${name}</a></li>` : `<li>${escaped(name)}</li>`
}

const not_built = "<p>The pages are not built here: <code>npm start</code> builds them.</p>"

const hasPage = (name: string) => pages.some(({ service }) => service === name)

/** A page that says what runs here, and how pages that are missing are had. */
export const home = (
  services: ReadonlyArray<string>,
  built: ReadonlySet<string>,
) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Almanac</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; }</style>
</head>
<body>
<h1>Almanac</h1>
<p>Five services on one replayable log. Here runs:</p>
<ul>${services.map(lineOf(built)).join("")}</ul>
${built.size === 0 && services.some(hasPage) ? not_built : ""}
<p><a href="/docs">Documentation</a> · <a href="/openapi.json">OpenAPI</a> ·
<a href="/readyz">Readiness</a></p>
</body>
</html>
`
