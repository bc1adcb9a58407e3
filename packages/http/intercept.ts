/** Intercepts the requests of an HTTP server. */
import type { RequestListener, Server } from "node:http"

/** The second event is emitted instead of the first if the client waits for "100 Continue". */
const events = ["request", "checkContinue"] as const

/**
 * Replaces each request listener with the result of `front`, which receives the current listener.
 */
export const intercept = (server: Server, wrap: (present: RequestListener) => RequestListener) => {
  for (const event of events) {
    // Only request listeners were added for these events.
    const plain = server.listeners(event).at(-1) as RequestListener | undefined
    if (plain === undefined) continue
    server.off(event, plain)
    server.on(event, wrap(plain))
  }
}

/** Whether the URL's path is `prefix` or is below it. */
export const isBelow = (prefix: string, url = "") => {
  if (!url.startsWith(prefix)) return false
  const next = url[prefix.length]
  return next === undefined || next === "/" || next === "?"
}
