/** nats-server (child process or external), connections to it, and its streams. See README.md. */

export {
  availabilityOf,
  type BusAvailability,
  busAvailability,
  offline_ms,
} from "./connection/availability.ts"
export {
  type Bus,
  connectBus,
  connectPlain,
  EventsConnection,
  NatsConnection,
} from "./connection/connection.ts"
export { type Link, LinkLost, overLink, watchLink } from "./connection/link.ts"
export { requester, type SendRequest } from "./connection/requester.ts"
export { core_inbox, responseSubject, sendResponse } from "./connection/response.ts"
export { isAbsent, isLeaderless, isTransient } from "./connection/transient.ts"
export { NatsServerFailed } from "./server/failure.ts"
export { server_name, serversOf } from "./server/orphans.ts"
export { type NatsFolders, type NatsProcessOptions, natsProcess } from "./server/process.ts"
export { externalNats, type NatsLogin, NatsServer, type NatsTls } from "./server/server.ts"
export { type BusUser, BusUserRefused, type BusUsers, userText } from "./server/users.ts"
export { bucketStream } from "./streams/bucket.ts"
export {
  differencesOf,
  ensureStream,
  findStream,
  StreamMismatch,
  undefinedIfMissing,
  type WantedStream,
} from "./streams/stream.ts"
