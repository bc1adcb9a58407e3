/**
 * HTML pages without built assets: the home page of a server without the dashboard, and errors for
 * browsers. They have the look of the built pages.
 */
import { HttpServerResponse } from "effect/http"
import { type Page, pagesOf } from "#schemas/system/page.ts"

/** The colours of `web/styles/colours.css`. */
const light = "--paper:#f4f5f6;--card:#fff;--ink:#14181d;--ink-2:#434b55;--line:#e5e8eb"
const dark = "--paper:#0d1013;--card:#15191d;--ink:#eceff2;--ink-2:#bcc4cc;--line:#252b31"

const style = `
:root{color-scheme:light;${light}}
:root[data-theme="dark"]{color-scheme:dark;${dark}}
@media(prefers-color-scheme:dark){:root:not([data-theme="light"]){color-scheme:dark;${dark}}}
*{box-sizing:border-box}
body{background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",
Roboto,"Helvetica Neue",Arial,sans-serif;margin:0}
header{background:var(--card);border-bottom:1px solid var(--line);display:flex;flex-wrap:wrap;
gap:4px 20px;padding:10px clamp(12px,2vw,28px)}
header strong{font-weight:600}
header nav{display:flex;flex-wrap:wrap;gap:4px 18px}
a{color:inherit;text-underline-offset:3px}
header a{color:var(--ink-2)}
main{background:var(--card);border:1px solid var(--line);border-radius:8px;
margin:8vh auto 0;max-width:620px;padding:22px 26px;width:calc(100% - 24px)}
h1{font-size:22px;letter-spacing:-.02em;margin:0 0 8px}
p,ul{margin:0 0 10px}
main p,main li{color:var(--ink-2);overflow-wrap:anywhere}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.93em}
small{color:var(--ink-2)}
`

/** Applies the theme that the user chose in the header of a built page. */
const script =
  'try{const t=localStorage.getItem("almanac-theme");' +
  'if(t)document.documentElement.setAttribute("data-theme",t)}catch{}'

/** The base64 SHA-256 digests of `style` and `script`; a test compares them. */
const style_digest = "RPKgosKMjiL7KbCv8B5/k6Qrltf0Eheb/aN95yOJE5k="
const script_digest = "XMJ6wr4RpLcg8ckn7kDsucZQZ5/cEyt9a0kV8xOjg2E="

const policy =
  `default-src 'none'; style-src 'sha256-${style_digest}'; script-src 'sha256-${script_digest}'; ` +
  "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
}

export const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (one) => entities[one] ?? one)

const linkOf = ({ path, title }: Page) => `<a href="${path}">${title}</a>`

interface PlainPage {
  readonly title: string
  /** HTML after the heading. */
  readonly body: string
  /** Services of this server, whose pages the header links. */
  readonly services: ReadonlyArray<string>
  readonly status: number
}

/** An HTML response with the title as its heading. */
export const plainPage = ({ title, body, services, status }: PlainPage) => {
  const links = pagesOf(services).map(linkOf)
  // Without the dashboard, `/` lists the services.
  const home = services.includes("capital-pressure") ? [] : ['<a href="/">Home</a>']
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Almanac</title>
<link rel="icon" href="data:,">
<script>${script}</script>
<style>${style}</style>
</head>
<body>
<header><strong>Almanac</strong>
<nav aria-label="Pages">${[...home, ...links].join("\n")}</nav></header>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`
  return HttpServerResponse.text(html, {
    status,
    contentType: "text/html; charset=utf-8",
    headers: {
      "content-security-policy": policy,
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      vary: "accept",
    },
  })
}
