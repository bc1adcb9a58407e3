/** Listens for HTTP/1.1, with limits, deadlines and TLS. README.md says more. */
export type { InternalHandler } from "./handler.ts"
export { connectionShares } from "./limits/connection-share.ts"
export { blockList, embeddedV4, networksOf } from "./limits/networks.ts"
export { cutUnread } from "./limits/unread-answer.ts"
export { isBelow } from "./request-front.ts"
export { httpServer, ListenFailure, type Listening, tlsFiles } from "./server.ts"
export { hasten, idOf, newIds, progressOf, socketOf } from "./transport.ts"
