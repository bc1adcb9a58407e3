/**
 * The nats-server of this process: a child in its data folder, with the accounts of nats.conf.
 * Source: DECISIONS "How it is run and reached" (NATS).
 */
import { randomBytes } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import { namedVariable, natsConf, variables } from "#adapters/bus/config.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { moveEvents } from "#adapters/published/move-stream.ts"
import { userOf } from "#adapters/published/subscriber-users.ts"
import { type NatsProcessOptions, NatsServer, NatsServerFailed, natsProcess } from "#bus"
import { findBinary, missingBinary } from "../../launcher/binaries.mjs"

export interface OwnServerOptions extends Pick<NatsProcessOptions, "before" | "patience"> {
  /** Path of nats-server; if absent or empty, PATH and the cache are searched. */
  readonly binary?: string | undefined
  /** Names of subscribers with their own user: letters and digits. */
  readonly subscribers?: ReadonlyArray<string> | undefined
}

/** Finds a nats-server that is new enough; the error says what to install. */
const natsBinary = (configured?: string) =>
  Effect.suspend(() => {
    // An empty setting means "not configured".
    const options = { configured: configured || undefined }
    const found = findBinary("nats-server", options)
    return found
      ? Effect.succeed(found.path)
      : Effect.fail(new NatsServerFailed({ message: missingBinary("nats-server", options) }))
  })

/** 192 random bits; the leading letter prevents nats.conf from parsing it as a number. */
const password = () => Redacted.make(`p${randomBytes(24).toString("hex")}`)

/** Starts the server. Passwords are new on every start. Fails with NatsServerFailed. */
export const ownServer = Effect.fnUntraced(function* (options: OwnServerOptions) {
  const { subscribers: names = [], before = () => Effect.void } = options
  const { nats: folder } = yield* DataFolder
  const binary = yield* natsBinary(options.binary)
  const [core, publisher, subscriber] = [password(), password(), password()]
  const subscribers = new Map(
    names.map((name) => [name, { user: userOf(name), password: password() }]),
  )
  const secrets: ReadonlyArray<readonly [string, Redacted.Redacted]> = [
    [variables.core, core],
    [variables.publisher, publisher],
    [variables.subscriber, subscriber],
    ...[...subscribers].map(([name, login]) => [namedVariable(name), login.password] as const),
  ]
  const { port, ...server } = yield* natsProcess({
    ...options,
    binary,
    folder,
    configuration: (folders, users) => natsConf(folders, users, names),
    environment: Object.fromEntries(secrets.map(([name, of]) => [name, Redacted.value(of)])),
    before: (store) =>
      Effect.andThen(
        Effect.sync(() => moveEvents(store)),
        before(store),
      ),
  })
  return NatsServer.of({
    ...server,
    servers: [`nats://127.0.0.1:${port}`],
    tls: undefined,
    core: { user: "core", password: core },
    publisher: { user: "publisher", password: publisher },
    subscriber: { user: "subscriber", password: subscriber },
    subscribers,
  })
})

/** `ownServer` as a layer, which stops the child on release. */
export const ownServerLayer = (options: OwnServerOptions = {}) =>
  Layer.effect(NatsServer, ownServer(options))
