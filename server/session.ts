/** The bus and the log, for as long as a verb runs. */
import { join } from "node:path"
import { Effect, Layer, Option } from "effect"
import { store_bytes_max } from "#adapters/bus/config.ts"
import { ownServerLayer } from "#adapters/bus/own-server.ts"
import { findInstance, type Instance } from "#adapters/data-folder/instance-file.ts"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { refusingLog } from "#adapters/health/refusing-log.ts"
import { logStanding } from "#adapters/log/standing.ts"
import { notary } from "#adapters/system/notary.ts"
import { connectBus, EventsConnection, NatsConnection, NatsServer } from "#bus"
import { CommitJudge } from "#events/log.ts"
import { LogGuard } from "#events/log-guard.ts"
import {
  dropBlocks,
  keepBlocks,
  kept_folder,
  LogWatch,
  logGenerations,
  mark_file,
  newWatch,
  openMark,
  readMark,
} from "#journal"
import type { Settings } from "#schemas/settings.ts"
import { judge } from "#server/aggregate-kinds.ts"
import { natsLogin } from "#server/nats-login.ts"

/** The log's first generation; those after it have a number behind the name. */
const log_name = "ALMANAC_LOG"

const outsideServer = (settings: Settings) =>
  NatsServer.outside({ url: settings.nats.url, ...natsLogin(settings) })

/** Where a start keeps the log's blocks until it knows that the log is whole. */
const keptIn = ({ data }: Settings) => join(data.dir, kept_folder)

/** Keeps what the disk holds of the log: nats-server may remove it where it is damaged. */
const keeping = (settings: Settings) => (store: string) =>
  Effect.flatMap(
    Effect.promise(() => keepBlocks(store, log_name, keptIn(settings))),
    (problem) => (problem === undefined ? Effect.void : Effect.logWarning(problem)),
  )

/**
 * The locked data folder, and the server of these settings: a child of ours, or the named one.
 * `meanwhile` is done while that starts.
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
          before: keeping(settings),
        })
      : outsideServer(settings)
  return Layer.provideMerge(Layer.merge(server, meanwhile), folder)
}

/** Where the log of these settings is: its newest generation on the bus, the others as files. */
export const generations = ({ nats, data }: Settings) => ({
  name: log_name,
  folder: join(data.dir, "log"),
  replicas: nats.replicas,
})

/**
 * The guard of the log, and its judge. The process that holds the data folder keeps the high-water
 * mark; others read it.
 */
export const watching = (settings: Settings) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const folder = yield* Effect.serviceOption(DataFolder)
      const path = join(settings.data.dir, mark_file)
      const release = Effect.promise(() => dropBlocks(keptIn(settings)).catch(() => undefined))
      const report = Effect.runForkWith(yield* Effect.context())
      const opened = Option.isSome(folder)
        ? Effect.map(
            openMark(path, (problem) => void report(Effect.logWarning(problem))),
            (kept) => newWatch(kept.found, kept, release),
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

/** The log of these settings over a bus that is there, with its guard. */
export const log = (settings: Settings) =>
  Layer.provideMerge(logGenerations(generations(settings)), watching(settings))

/** The bus alone, for what is done to the log itself. */
export const busAlone = (settings: Settings) =>
  Layer.provideMerge(NatsConnection.layer, serverOf(settings))

/** As `serverOf`, of a verb that ends soon: a start waits for it. */
const briefServer = (settings: Settings) =>
  serverOf(settings, Layer.empty, DataFolder.layer(settings.data.dir, "brief"))

/** Everything that a process needs which is alone on its data folder. */
export const exclusive = (settings: Settings, meanwhile?: Layer.Layer<never>) =>
  Layer.provideMerge(refusingLog, log(settings)).pipe(
    Layer.provideMerge(Layer.merge(NatsConnection.layer, EventsConnection.layer)),
    Layer.provideMerge(serverOf(settings, meanwhile)),
  )

const serverBeside = (settings: Settings) =>
  Effect.map(findInstance(settings.data.dir), (instance) =>
    Option.match(instance, {
      onNone: () => Layer.fresh(briefServer(settings)),
      onSome: (found) => instanceServer(settings, found),
    }),
  )

/** The bus of an instance: what it tells of its own, or what the settings say of another. */
const instanceServer = (settings: Settings, { nats: { url, user, password } }: Instance) =>
  settings.nats.url === ""
    ? NatsServer.outside({ url, login: { user, password } })
    : outsideServer(settings)

/**
 * The log beside a running instance, over its bus; without one, over a server of our own, and then
 * the data folder is locked until the verb ends.
 */
export const beside = (settings: Settings) => Layer.provide(log(settings), busBeside(settings))

/** The log for those who only read: its stream is neither created nor changed. */
export const logAsItIs = (settings: Settings) =>
  Layer.provideMerge(
    logGenerations({ ...generations(settings), as_it_is: true }),
    watching(settings),
  )

/** As `beside`, for commands that only read: they leave the log of an outside bus as it is. */
export const readOnlyBeside = (settings: Settings) =>
  settings.nats.url === ""
    ? beside(settings)
    : Layer.provide(logAsItIs(settings), busBeside(settings))

const both = Layer.merge(NatsConnection.layer, EventsConnection.layer)

/** The bus for a restore, which alone may open a folder that is half restored. */
export const busRestored = (settings: Settings) =>
  Layer.provideMerge(both, serverOf(settings, Layer.empty, DataFolder.restored(settings.data.dir)))

/** The bus beside with the published events: a running instance lets us read those. */
export const bothBeside = (settings: Settings) =>
  Layer.unwrap(
    Effect.map(findInstance(settings.data.dir), (found) => {
      if (Option.isNone(found)) return Layer.provide(both, Layer.fresh(briefServer(settings)))
      const { nats, events: login = nats } = found.value
      const server = instanceServer(settings, found.value)
      if (settings.nats.url !== "") return Layer.provide(both, server)
      return Layer.merge(
        Layer.provide(NatsConnection.layer, server),
        Layer.effect(EventsConnection, connectBus({ servers: [nats.url], login })),
      )
    }),
  )

/** The bus beside a running instance, or a server of our own while nothing runs. */
export const busBeside = (settings: Settings) =>
  Layer.unwrap(
    Effect.map(serverBeside(settings), (server) => Layer.provide(NatsConnection.layer, server)),
  )

/** Where the log's size is asked, and what it may take. */
export const standing = ({ nats, data }: Settings) => ({
  name: log_name,
  store: nats.url === "" ? join(data.dir, "nats") : undefined,
  store_bytes_max,
})

/** What a running instance knows of its log for those outside: its key, and its size. */
export const witnessing = (settings: Settings) =>
  Layer.merge(notary(settings.data.dir, settings.audit.key_file), logStanding(standing(settings)))

/** The log beside, with the installation's key, for what others are to believe. */
export const witnessed = (settings: Settings) =>
  Layer.merge(readOnlyBeside(settings), notary(settings.data.dir, settings.audit.key_file))
