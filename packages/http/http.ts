/** HTTP/1.1 listener with limits, deadlines and TLS. See README.md. */
export type { InternalHandler } from "./handler.ts"
export { isBelow } from "./intercept.ts"
export { connectionShares } from "./limits/connection-share.ts"
export { blockList, embeddedV4, networksOf } from "./limits/networks.ts"
export { disconnectStalled } from "./limits/stalled-clients.ts"
export { httpServer, ListenFailure, type Listening, tlsFiles } from "./server.ts"
export { newIds, progressOf, sendDirectly, socketOf, uuidOf } from "./transport.ts"
