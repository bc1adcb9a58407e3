/** Listeners of an HTTP server that come before whoever took its requests until now. */
import type { RequestListener, Server } from "node:http"

/** `front` is given who takes them now, and answers who does from here on. */
export const inFront = (
  server: Server,
  event: "request" | "checkContinue",
  front: (plain: RequestListener) => RequestListener,
) => {
  // Only listeners of these events were added to them.
  const plain = server.listeners(event).at(-1) as RequestListener | undefined
  if (plain === undefined) return
  server.off(event, plain)
  server.on(event, front(plain))
}
