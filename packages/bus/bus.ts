/** nats-server (child process or external), connections to it, and its streams. See README.md. */
export { answer, answerSubject, core_inbox } from "./connection/answer.ts"
export { type Ask, asker } from "./connection/asker.ts"
export {
  type Bus,
  connectBus,
  connectPlain,
  EventsConnection,
  NatsConnection,
} from "./connection/connection.ts"
export { type Link, LinkLost, overLink, watchLink } from "./connection/link.ts"
export { isAbsent, isLeaderless, isPassing } from "./connection/passing.ts"
export { away_ms, type BusStanding, busStanding, standingOf } from "./connection/standing.ts"
export { NatsServerFailed } from "./server/failure.ts"
export { server_name, serversOf } from "./server/orphans.ts"
export { type NatsFolders, type NatsProcessOptions, natsProcess } from "./server/process.ts"
export { type NatsLogin, NatsServer, type NatsTls, outsideNats } from "./server/server.ts"
export { type BusUser, BusUserRefused, type BusUsers, userText } from "./server/users.ts"
export { bucketStream } from "./streams/bucket.ts"
export {
  differencesOf,
  ensureStream,
  findStream,
  StreamMismatch,
  undefinedWhereNone,
  type WantedStream,
} from "./streams/stream.ts"
