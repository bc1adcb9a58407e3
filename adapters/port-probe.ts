/**
 * Whether a port is free. A listener that shares its port among threads is let in by the system
 * beside another process's that does so too, and would have half of its connections.
 */
import { createServer } from "node:net"

/** Rejects with the system's error where somebody listens there, or nobody may. */
export const probePort = (address: { readonly host: string; readonly port: number }) =>
  new Promise<void>((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen(address, () => server.close(() => resolve()))
  })
