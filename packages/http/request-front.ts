/** Listeners of an HTTP server that see its requests before the present listener. */
import type { RequestListener, Server } from "node:http"

/** Events that bring a request; the client of the second waits with its body for a 100. */
const events = ["request", "checkContinue"] as const

/** `front` gets the present listener and returns the one that takes its place. */
export const inFront = (server: Server, front: (plain: RequestListener) => RequestListener) => {
  for (const event of events) {
    // Only listeners of these events were added to them.
    const plain = server.listeners(event).at(-1) as RequestListener | undefined
    if (plain === undefined) continue
    server.off(event, plain)
    server.on(event, front(plain))
  }
}

/** Whether a URL is that of `prefix`, or of a path below it. */
export const isBelow = (prefix: string, url = "") => {
  if (!url.startsWith(prefix)) return false
  const next = url[prefix.length]
  return next === undefined || next === "/" || next === "?"
}
