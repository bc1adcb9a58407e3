/** The operators' console: sign-in, views by address, and the status of the event stream. */
import { announce } from "../announcement.ts"
import { h, morphChildren } from "../element.ts"
import { fillHeader } from "../header.ts"
import { closeConfirmation } from "./action.ts"
import { get, hasToken, onUnauthorized, useToken } from "./client.ts"
import { coverageView } from "./coverage.ts"
import { onStreamStatus, type StreamStatus } from "./events.ts"
import { fleetView } from "./fleet.ts"
import { jobsView } from "./jobs.ts"
import { overviewView } from "./overview.ts"
import { statusMark } from "./parts.ts"
import { ringView } from "./ring.ts"
import { signInForm } from "./sign-in.ts"
import { timeTravelView } from "./time-travel.ts"
import { timelineView } from "./timeline.ts"
import type { OpenView, View } from "./view.ts"

const views: readonly [View, ...View[]] = [
  overviewView,
  jobsView,
  fleetView,
  coverageView,
  ringView,
  timelineView,
  timeTravelView,
]

const status = h("div", { class: "status-parts" })
fillHeader("Console", status)

const main = document.querySelector<HTMLElement>("#main") ?? document.body
const nav = document.querySelector<HTMLElement>("#views") ?? document.createElement("nav")

let current: { readonly view: View; readonly on: OpenView } | undefined
let is_locked = true
let stream_status: StreamStatus = "off"

const stream_texts = {
  off: undefined,
  connecting: ["waiting", "Connecting\u2026"],
  live: ["good", "Live"],
  lost: ["bad", "Event stream lost; reconnecting"],
  refused: ["over", "No live events: access denied"],
} as const

const drawStatus = () => {
  const words = stream_texts[stream_status]
  morphChildren(status, [
    ...(words === undefined || is_locked ? [] : [statusMark(words[0], words[1])]),
    ...(is_locked || !hasToken()
      ? []
      : [h("button", { type: "button", onclick: () => lock("") }, "Sign out")]),
  ])
}

const drawNav = (view: View | undefined) => {
  nav.hidden = view === undefined
  morphChildren(
    nav,
    views.map(({ name, title }) =>
      h("a", { href: `#${name}`, "aria-current": view?.name === name && "page" }, title),
    ),
  )
}

const closeView = () => {
  closeConfirmation()
  current?.on.close()
  current = undefined
}

const addressParts = () => {
  const [name = "", query = ""] = location.hash.slice(1).split("?", 2)
  return { name, query: new URLSearchParams(query) }
}

/** Shows the view in the address; an unknown address changes nothing. */
const followAddress = () => {
  if (is_locked) return
  const { name, query } = addressParts()
  const view = views.find((one) => one.name === name) ?? (current ? undefined : views[0])
  if (view === undefined) return
  if (current?.view !== view) {
    closeView()
    const place = h("div", { class: `view of-${view.name}` })
    main.replaceChildren(place)
    current = { view, on: view.open(place) }
    document.title = `${view.title} \u00b7 Console \u00b7 Almanac`
    announce(view.title)
    drawNav(view)
  }
  current.on.show(query)
}

/** Asks for a token; `reason`: why the previous one was rejected. */
function lock(reason: string) {
  closeView()
  useToken(undefined)
  is_locked = true
  drawNav(undefined)
  drawStatus()
  main.replaceChildren(signInForm(reason, (token) => void unlock(token)))
  main.querySelector("input")?.focus()
}

/** Opens the views if the server accepts the token or requires none. */
async function unlock(token: string | undefined) {
  if (token !== undefined) useToken(token)
  const result = await get("/v1/")
  if (result.kind === "problem") {
    const { status: code, title, text } = result.problem
    lock(code === 401 && token === undefined ? "" : `${title}. ${text}`)
    return
  }
  is_locked = false
  drawStatus()
  followAddress()
}

onUnauthorized(() => {
  if (!is_locked) lock("The token has expired or was revoked. Sign in again.")
})
onStreamStatus((now) => {
  stream_status = now
  drawStatus()
})
addEventListener("hashchange", followAddress)
drawNav(undefined)
void unlock(undefined)
