/** The bus and the log for the duration of a command. */
import { join } from "node:path"
import { Effect, Layer, Option } from "effect"
import { store_bytes_max } from "#adapters/bus/config.ts"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { findInstance, type Instance } from "#adapters/data-folder/instance-file.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { refusingLog } from "#adapters/health/refusing-log.ts"
import { logStanding } from "#adapters/log/size-monitor.ts"
import { notary } from "#adapters/system/notary.ts"
import { connectBus, EventsConnection, NatsConnection, NatsServer } from "#bus"
import { CommitJudge } from "#events/log.ts"
import { LogGuard } from "#events/log-guard.ts"
import {
  LogWatch,
  logGenerations,
  mark_file,
  newWatch,
  openMark,
  preserveBlocks,
  preserved_folder,
  readMark,
  removePreserved,
} from "#journal"
import type { Settings } from "#schemas/settings.ts"
import { judge } from "#server/aggregate-kinds.ts"
import { natsLogin } from "#server/nats-login.ts"

/** The stream of the log's first generation; later ones append a number. */
const log_name = "ALMANAC_LOG"

const outsideServer = (settings: Settings) =>
  NatsServer.external({ url: settings.nats.url, ...natsLogin(settings) })

/** The folder for the log's blocks until startup has verified the log. */
const preservedFolder = ({ data }: Settings) => join(data.dir, preserved_folder)

/** Preserves the log's blocks before startup: nats-server may delete damaged ones. */
const preserveLogBlocks = (settings: Settings) => (store: string) =>
  Effect.flatMap(
    Effect.promise(() => preserveBlocks(store, log_name, preservedFolder(settings))),
    (problem) => (problem === undefined ? Effect.void : Effect.logWarning(problem)),
  )

/**
 * The locked data folder, and the bus server of these settings: a child process, or an external
 * one. `meanwhile` runs while the server starts.
 */
const serverOf = (
  settings: Settings,
  meanwhile: Layer.Layer<never> = Layer.empty,
  folder = DataFolder.layer(settings.data.dir),
) => {
  const { nats } = settings
  const server =
    nats.url === ""
      ? ownServerLayer({
          binary: nats.binary,
          subscribers: nats.subscribers,
          before: preserveLogBlocks(settings),
        })
      : outsideServer(settings)
  return Layer.provideMerge(Layer.merge(server, meanwhile), folder)
}

/** The location of the log: its newest generation on the bus, older ones in files. */
export const generations = ({ nats, data }: Settings) => ({
  name: log_name,
  folder: join(data.dir, "log"),
  replicas: nats.replicas,
})

/**
 * The log's guard and judge. The process that has locked the data folder maintains the high-water
 * mark; others read it.
 */
export const watching = (settings: Settings) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const folder = yield* Effect.serviceOption(DataFolder)
      const path = join(settings.data.dir, mark_file)
      const release = Effect.promise(() =>
        removePreserved(preservedFolder(settings)).catch(() => undefined),
      )
      const report = Effect.runForkWith(yield* Effect.context())
      const opened = Option.isSome(folder)
        ? Effect.map(
            openMark(path, (problem) => void report(Effect.logWarning(problem))),
            (mark) => newWatch(mark.found, mark, release),
          )
        : Effect.map(readMark(path), (mark) => newWatch(mark))
      const watch = yield* Effect.catch(opened, ({ message }) =>
        Effect.as(Effect.logWarning(message), newWatch(undefined)),
      )
      return Layer.mergeAll(
        Layer.succeed(LogWatch, watch),
        Layer.succeed(LogGuard, watch),
        Layer.succeed(CommitJudge, judge),
      )
    }),
  )

/** The log over an existing bus, with its guard. */
export const log = (settings: Settings) =>
  Layer.provideMerge(logGenerations(generations(settings)), watching(settings))

/** Only the bus, for maintenance of the log itself. */
export const busAlone = (settings: Settings) =>
  Layer.provideMerge(NatsConnection.layer, serverOf(settings))

/** Like `serverOf`, for a short command: a starting server waits until it ends. */
const briefServer = (settings: Settings) =>
  serverOf(settings, Layer.empty, DataFolder.layer(settings.data.dir, "brief"))

/** All that a process with exclusive access to its data folder needs. */
export const exclusive = (settings: Settings, meanwhile?: Layer.Layer<never>) =>
  Layer.provideMerge(refusingLog, log(settings)).pipe(
    Layer.provideMerge(Layer.merge(NatsConnection.layer, EventsConnection.layer)),
    Layer.provideMerge(serverOf(settings, meanwhile)),
  )

const attachedServer = (settings: Settings) =>
  Effect.map(findInstance(settings.data.dir), (instance) =>
    Option.match(instance, {
      onNone: () => Layer.fresh(briefServer(settings)),
      onSome: (found) => serverOfInstance(settings, found),
    }),
  )

/** The bus of a running instance: its own, or the external one from the settings. */
const serverOfInstance = (settings: Settings, { nats: { url, user, password } }: Instance) =>
  settings.nats.url === ""
    ? NatsServer.external({ url, login: { user, password } })
    : outsideServer(settings)

/**
 * The log over the bus of a running instance. Without one, a temporary server is started and the
 * data folder stays locked until the command ends.
 */
export const attachedLog = (settings: Settings) =>
  Layer.provide(log(settings), attachedBus(settings))

/** The log for readers: its stream is neither created nor changed. */
export const logAsItIs = (settings: Settings) =>
  Layer.provideMerge(
    logGenerations({ ...generations(settings), read_only: true }),
    watching(settings),
  )

/** Like `attachedLog`, for readers: they never change the log of an external bus. */
export const attachedLogReadOnly = (settings: Settings) =>
  settings.nats.url === ""
    ? attachedLog(settings)
    : Layer.provide(logAsItIs(settings), attachedBus(settings))

const both = Layer.merge(NatsConnection.layer, EventsConnection.layer)

/** The bus for a restore, the only command that may open a partially restored folder. */
export const busRestored = (settings: Settings) =>
  Layer.provideMerge(both, serverOf(settings, Layer.empty, DataFolder.restored(settings.data.dir)))

/** Like `attachedBus`, plus the published events, which a running instance lets us read. */
export const attachedBuses = (settings: Settings) =>
  Layer.unwrap(
    Effect.map(findInstance(settings.data.dir), (found) => {
      if (Option.isNone(found)) return Layer.provide(both, Layer.fresh(briefServer(settings)))
      const { nats, events: login = nats } = found.value
      const server = serverOfInstance(settings, found.value)
      if (settings.nats.url !== "") return Layer.provide(both, server)
      return Layer.merge(
        Layer.provide(NatsConnection.layer, server),
        Layer.effect(EventsConnection, connectBus({ servers: [nats.url], login })),
      )
    }),
  )

/** The bus of a running instance, or of a temporary server if none runs. */
export const attachedBus = (settings: Settings) =>
  Layer.unwrap(
    Effect.map(attachedServer(settings), (server) => Layer.provide(NatsConnection.layer, server)),
  )

/** Where to read the log's size, and its limit. */
export const standing = ({ nats, data }: Settings) => ({
  name: log_name,
  store: nats.url === "" ? join(data.dir, "nats") : undefined,
  store_bytes_max,
})

/** The installation's key and the log's size, as a running instance exposes them. */
export const witnessing = (settings: Settings) =>
  Layer.merge(notary(settings.data.dir, settings.audit.key_file), logStanding(standing(settings)))

/** The log with the installation's key, for signed proofs and exports. */
export const witnessed = (settings: Settings) =>
  Layer.merge(attachedLogReadOnly(settings), notary(settings.data.dir, settings.audit.key_file))
