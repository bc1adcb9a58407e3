/** The page at `/` where the dashboard has none: it is not served here, or not built. */

const qualityOf = (accept: string, type: string) => {
  const parts = accept.split(",").map((part) => part.trim().split(/\s*;\s*/))
  const found = parts.find(([name]) => name === type)
  if (found === undefined) return 0
  const quality = found.find((parameter) => parameter.startsWith("q="))
  return quality === undefined ? 1 : Number(quality.slice(2)) || 0
}

/** Whether a page is wanted rather than data: a browser says so, other programs do not. */
export const prefersHtml = (accept = "") =>
  qualityOf(accept, "text/html") > qualityOf(accept, "application/json")

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const line = (name: string) => `<li>${escaped(name)}</li>`

const not_built = "<p>The dashboard's page is not built here: <code>npm start</code> builds it.</p>"

/** A page that says what runs here, and how the dashboard's own is had. */
export const home = (services: ReadonlyArray<string>) => `<!doctype html>
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
<ul>${services.map(line).join("")}</ul>
${services.includes("capital-pressure") ? not_built : ""}
<p><a href="/docs">Documentation</a> · <a href="/openapi.json">OpenAPI</a> ·
<a href="/readyz">Readiness</a></p>
</body>
</html>
`
