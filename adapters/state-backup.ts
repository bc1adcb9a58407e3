/**
 * A backup of the control plane's own data, beside a running server or while none runs.
 *
 * The order of reading makes it one moment. What runs behind the log is read before the log's end
 * is asked (webhooks' cursors, published events), so that it never knows of a commit that is not in
 * the backup; what the log names is read after it (secrets, tokens), so that it is there.
 *
 * Source: docs/decisions/0143.
 */
import { createHash, randomUUID } from "node:crypto"
import { join } from "node:path"
import { JetStreamApiError } from "@nats-io/jetstream"
import { Clock, DateTime, Effect, Option, Schema, Stream } from "effect"
import { generation_stream } from "#actors/system/generation.ts"
import { Notary } from "#actors/system/notary.ts"
import { empty_tree, growing, leafOf, openTree, rootOf, sealedTree } from "#actors/system/tree.ts"
import { digest, sha256 } from "#adapters/commit-codec.ts"
import { readFailure } from "#adapters/log-failure.ts"
import { findGenerations, type Generation } from "#adapters/log-generation.ts"
import type { GenerationsOptions } from "#adapters/log-generations.ts"
import { events_stream, events_subject } from "#adapters/nats-config.ts"
import { type Bus, EventsConnection, NatsConnection } from "#adapters/nats-connection.ts"
import { watchLink } from "#adapters/nats-link.ts"
import { not_found } from "#adapters/nats-stream.ts"
import { bytesOf, type FoundFile, isSpool, keptFiles } from "#adapters/state-files.ts"
import { type StateStore, StateUnusable } from "#adapters/state-store.ts"
import { type KeptMessage, packedMessages, type Stretch } from "#adapters/stream-copy.ts"
import { webhook_cursors } from "#adapters/webhook-cursors-jetstream.ts"
import { Log } from "#events/log.ts"
import { GenerationEvent } from "#events/system/generation.ts"
import type {
  StateManifest,
  StoredFile,
  StoredLog,
  StoredStream,
} from "#schemas/system/state-backup.ts"

export interface BackupOptions {
  readonly store: StateStore
  /** The data folder. */
  readonly folder: string
  readonly log: GenerationsOptions
  /** Whether no server runs: one keeps its spools to itself, and has them in the log at once. */
  readonly is_alone: boolean
  /** This program's version. */
  readonly almanac: string
  /** Hears of each part that is done. */
  readonly told: (line: string) => Effect.Effect<void>
}

const unusable = (message: string) => new StateUnusable({ message })
const why = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

/** Modes of what is no file of the data folder. */
const part_mode = 0o600

const asked = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => readFailure(cause) })

/** The last sequence of a stream; 0 where there is no stream. */
const lastOf = ({ jsm }: Bus, name: string) =>
  asked(async () => {
    try {
      return (await jsm.streams.info(name)).state.last_seq
    } catch (cause) {
      if (cause instanceof JetStreamApiError && cause.code === not_found) return 0
      throw cause
    }
  })

interface Part {
  readonly bus: Bus
  readonly name: string
  /** What the file is called in the manifest. */
  readonly called: string
  readonly stretch: Stretch
  readonly each?: (message: KeptMessage) => void
}

/** One more file with the messages of a stretch; undefined where there are none. */
const added = Effect.fnUntraced(function* (
  { put }: StateStore,
  { bus, name, called, stretch, each }: Part,
) {
  const { after, until } = stretch
  if (until <= after) return undefined
  const { connection, jsm } = bus
  const source = { connection, jsm, link: yield* watchLink(connection), name }
  let messages = 0
  const packed = yield* packedMessages(source, stretch, (message) => {
    messages++
    each?.(message)
  })
  const path = `${called}/${after + 1}-${until}.ndjson.gz`
  const part = yield* Effect.tryPromise({
    try: () => put(path, part_mode, packed),
    catch: (cause) => unusable(`${called} cannot be copied: ${why(cause)}`),
  })
  return { part, messages }
}, Effect.scoped)

const grown = (
  before: StoredStream | undefined,
  more: { readonly part: StoredFile; readonly messages: number } | undefined,
  last: number,
): StoredStream => ({
  last,
  messages: (before?.messages ?? 0) + (more?.messages ?? 0),
  parts: [...(before?.parts ?? []), ...(more === undefined ? [] : [more.part])],
})

/** The published events so far. What was in the backup stays: they are only ever added to. */
const events = Effect.fnUntraced(function* ({ store }: BackupOptions) {
  const bus = yield* EventsConnection
  const until = yield* lastOf(bus, events_stream)
  const before = store.manifest?.events
  const after = before?.last ?? 0
  if (after > until) return yield* unusable(anotherLog(store.folder))
  const stretch = { filter: events_subject, after, until }
  const more = yield* added(store, { bus, name: events_stream, called: "events", stretch })
  return grown(before, more, until)
})

/** The cursors of webhooks, all of them: they are few, and each change is one more. */
const webhooks = Effect.fnUntraced(function* ({ store }: BackupOptions) {
  const bus = yield* NatsConnection
  const until = yield* lastOf(bus, webhook_cursors.stream)
  const stretch = { filter: webhook_cursors.subjects, after: 0, until }
  const part = { bus, name: webhook_cursors.stream, called: "webhooks", stretch }
  return grown(undefined, yield* added(store, part), until)
})

const anotherLog = (folder: string) =>
  `${folder} holds the backup of another log, or of one that went on differently: ` +
  "give an empty folder."

/** Whether the log still has what was its last commit in the backup. */
const proveSame = Effect.fnUntraced(function* ({ folder }: StateStore, { last, hash }: StoredLog) {
  const log = yield* Log
  const found = yield* Stream.runHead(log.read("", last - 1))
  const is_same = Option.exists(found, (one) => one.position === last && one.hash === hash)
  if (!is_same) return yield* unusable(anotherLog(folder))
})

/** The tree over all commits before the generation's first that is no copy. */
const treeBefore = Effect.fnUntraced(function* ({ number }: Generation) {
  if (number === 1) return empty_tree
  const log = yield* Log
  const began = (yield* log.load(generation_stream))?.commit.events.at(-1)
  return openTree((yield* Schema.decodeUnknownEffect(GenerationEvent)(began)).tree)
})

/** The newest generation of the log; those before it are files of the data folder. */
const commits = Effect.fnUntraced(function* ({ store, folder, log: of }: BackupOptions) {
  const bus = yield* NatsConnection
  const notary = yield* Notary
  const { current } = yield* findGenerations(bus.jsm, of.name)
  const { number: generation, stream: name, base, copies, head } = current
  const earlier = store.manifest?.log
  if (earlier !== undefined) yield* proveSame(store, earlier)
  const before = earlier?.generation === generation ? earlier : undefined

  const tree = before === undefined ? yield* treeBefore(current) : openTree(before.tree)
  const growth = growing(digest, tree)
  let hash = before?.hash ?? ""
  const each = ({ sequence: position, subject, data }: KeptMessage) => {
    if (position <= base) return
    hash = sha256(data)
    growth.add(leafOf(digest, { position, stream: subject.slice(head.length + 1), hash }))
  }
  const until = yield* lastOf(bus, name)
  if (until === 0) return yield* unusable(`The log of ${folder} is empty: is it the right folder?`)
  const stretch = { filter: `${head}.>`, after: before?.last ?? 0, until }
  const more = yield* added(store, { bus, name, called: "commits", stretch, each })
  const after = growth.tree()
  if (after.size !== until) {
    return yield* unusable(`The log has ${until} commits, and ${after.size} were read.`)
  }
  return {
    ...grown(before, more, until),
    ...{ generation, base, copies, hash, tree: sealedTree(after), key: notary.key.verifier },
    head: notary.sign({ size: until, root: rootOf(digest, after) }),
  } satisfies StoredLog
})

/** A file of the data folder; what is as it was is not written again. Undefined: it is gone. */
const fileOf = Effect.fnUntraced(function* ({ store, folder }: BackupOptions, found: FoundFile) {
  const { path, mode } = found
  return yield* Effect.tryPromise({
    try: async () => {
      try {
        const known = store.manifest?.files.find((one) => one.path === path)
        if (known !== undefined && known.sha256 === (await digestOf(folder, path))) {
          return { ...known, mode }
        }
        return await store.put(path, mode, bytesOf(folder, path))
      } catch (cause) {
        // It was there when the folder was listed: a secret that was removed, say.
        if (isGone(cause, join(folder, path))) return undefined
        throw cause
      }
    },
    catch: (cause) => unusable(`${path} cannot be copied: ${why(cause)}`),
  })
})

const isGone = (cause: unknown, path: string) =>
  cause instanceof Error &&
  "code" in cause &&
  cause.code === "ENOENT" &&
  "path" in cause &&
  cause.path === path

const digestOf = async (folder: string, path: string) => {
  const hash = createHash("sha256")
  for await (const piece of bytesOf(folder, path)) hash.update(piece)
  return hash.digest("hex")
}

const files = Effect.fnUntraced(function* (options: BackupOptions) {
  const { folder, is_alone } = options
  const found = yield* Effect.promise(() => keptFiles(folder))
  const some = found.filter(({ path }) => is_alone || !isSpool(path))
  const kept = yield* Effect.forEach(some, (one) => fileOf(options, one))
  return kept.filter((one) => one !== undefined)
})

/** Writes a backup, or adds to the one that is there. StateUnusable, LogUnavailable. */
export const backupState = Effect.fnUntraced(function* (options: BackupOptions) {
  const { store, almanac, told } = options
  const cursors = yield* webhooks(options)
  yield* told(`webhooks: ${cursors.messages} cursors`)
  const published = yield* events(options)
  yield* told(`events: ${published.last} published`)
  const log = yield* commits(options)
  yield* told(`log: generation ${log.generation} up to position ${log.last}`)
  const kept = yield* files(options)
  yield* told(`files: ${kept.length} of the data folder`)
  const manifest: StateManifest = {
    ...{ id: randomUUID(), almanac, log, events: published, webhooks: cursors },
    created_at: DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis)),
    files: kept,
  }
  yield* store.commit(manifest)
  return manifest
})
