/**
 * Whether a port is free. A listener that shares its port among threads is let in by the system
 * beside another process's that does so too, and would have half of its connections.
 */
import { once } from "node:events"
import { createServer } from "node:net"

/** Rejects with the system's error where somebody listens there, or nobody may. */
export const probePort = async (address: { readonly host: string; readonly port: number }) => {
  const server = createServer()
  await once(server.listen(address), "listening")
  await once(server.close(), "close")
}
