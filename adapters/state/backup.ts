/**
 * Backs up the control plane's own data, with or without a running server.
 *
 * The order of reading makes the backup consistent. Data that lags behind the log (webhooks'
 * cursors, published events) is read before the log's last position is determined, so that it never
 * refers to a commit outside the backup. Data that the log refers to (secrets, tokens) is read
 * afterwards.
 *
 * Source: docs/decisions/0143.
 */
import { createHash, randomUUID } from "node:crypto"
import { join } from "node:path"
import { Clock, DateTime, Effect, Option, Schema, Stream } from "effect"
import { generation_stream } from "#actors/system/generation.ts"
import { Notary } from "#actors/system/notary.ts"
import {
  empty_tree,
  leafOf,
  makeTreeBuilder,
  openTree,
  rootOf,
  sealedTree,
} from "#actors/system/tree.ts"
import { events_stream, events_subject } from "#adapters/published/stream-name.ts"
import { bytesOf, type FoundFile, includedFiles, isSpool } from "#adapters/state/files.ts"
import { verifyArchives } from "#adapters/state/proof.ts"
import type { Bytes } from "#adapters/state/seal.ts"
import { type StateStore, StateUnusable, unusable } from "#adapters/state/store.ts"
import {
  type CopiedMessage,
  compressMessages,
  decodeBytes,
  exportMessages,
  lastMessages,
  type SequenceRange,
} from "#adapters/state/stream-copy.ts"
import { webhook_cursors } from "#adapters/system/webhook/cursors-jetstream.ts"
import { type Bus, EventsConnection, NatsConnection, undefinedIfMissing, watchLink } from "#bus"
import { Log } from "#events/log.ts"
import { GenerationEvent } from "#events/system/generation.ts"
import type { GenerationsOptions } from "#journal"
import {
  archiveIndex,
  digest,
  findGenerations,
  type Generation,
  readFailure,
  sha256,
} from "#journal"
import { causeText } from "#schemas/cause-text.ts"
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
  /** Whether no server runs. A running one owns its spools and soon writes them to the log. */
  readonly is_alone: boolean
  /** This program's version. */
  readonly almanac: string
  /** Receives a line for each finished part. */
  readonly onProgress: (line: string) => Effect.Effect<void>
}

/** File mode of parts that are not files of the data folder. */
const part_mode = 0o600

const attempt = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => readFailure(cause) })

/** The last sequence and the number of messages of a stream; 0 if it does not exist. */
const streamState = ({ jsm }: Bus, name: string) =>
  attempt(async () => {
    const info = await jsm.streams.info(name).catch(undefinedIfMissing)
    return { last: info?.state.last_seq ?? 0, messages: info?.state.messages ?? 0 }
  })
const lastOf = (bus: Bus, name: string) => Effect.map(streamState(bus, name), ({ last }) => last)

interface StreamPart {
  readonly bus: Bus
  readonly name: string
  /** The file's name in the manifest. */
  readonly label: string
  readonly range: SequenceRange
  readonly each?: (message: CopiedMessage) => void
}

/** Adds a file with the messages of a range; undefined if there are none. */
const addPart = Effect.fnUntraced(function* (
  store: StateStore,
  { bus, name, label, range, each }: StreamPart,
) {
  const { after, until } = range
  if (until <= after) return undefined
  const { connection, jsm } = bus
  const source = { connection, jsm, link: yield* watchLink(connection), name }
  let messages = 0
  const packed = yield* exportMessages(source, range, (message) => {
    messages++
    each?.(message)
  })
  const path = `${label}/${after + 1}-${until}.ndjson.gz`
  return { part: yield* putPart(store, path, packed), messages }
}, Effect.scoped)

const putPart = ({ put }: StateStore, path: string, bytes: Bytes) =>
  Effect.tryPromise({
    try: () => put(path, part_mode, bytes),
    catch: (cause) => unusable(`${path} cannot be copied: ${causeText(cause)}`),
  })

/** Verifies that the existing files of an incremental backup are still present. */
const checkParts = Effect.fnUntraced(function* (
  { folder, holds }: StateStore,
  { parts }: StoredStream,
) {
  for (const part of parts) {
    if (yield* Effect.promise(() => holds(part))) continue
    return yield* unusable(
      `${part.path} is missing in ${folder}, or cut off: back up to an empty folder.`,
    )
  }
})

const extended = (
  before: StoredStream | undefined,
  more: { readonly part: StoredFile; readonly messages: number } | undefined,
  last: number,
): StoredStream => ({
  last,
  messages: (before?.messages ?? 0) + (more?.messages ?? 0),
  parts: [...(before?.parts ?? []), ...(more === undefined ? [] : [more.part])],
})

/** Backs up the published events incrementally: the stream is append-only. */
const events = Effect.fnUntraced(function* ({ store }: BackupOptions) {
  const bus = yield* EventsConnection
  const { last: until, messages } = yield* streamState(bus, events_stream)
  const before = store.manifest?.events
  const after = before?.last ?? 0
  if (after > until) return yield* unusable(anotherLog(store.folder))
  if (before !== undefined) yield* checkParts(store, before)
  const range = { filter: events_subject, after, until }
  // Events discarded for their age cannot be read, even the last one.
  const more =
    messages === 0
      ? undefined
      : yield* addPart(store, { bus, name: events_stream, label: "events", range })
  return extended(before, more, until)
})

/** Backs up all webhook cursors: they are few and change often. */
const webhooks = Effect.fnUntraced(function* ({ store }: BackupOptions) {
  const { jsm } = yield* NatsConnection
  const { stream, subjects } = webhook_cursors
  const messages = yield* attempt(() => lastMessages(jsm, stream, subjects))
  const last = messages.at(-1)?.sequence ?? 0
  if (last === 0) return extended(undefined, undefined, 0)
  const part = yield* putPart(store, `webhooks/1-${last}.ndjson.gz`, compressMessages(messages))
  return extended(undefined, { part, messages: messages.length }, last)
})

const anotherLog = (folder: string) =>
  `${folder} contains the backup of another log, or of a log that has diverged: ` +
  "use an empty folder."

/** Verifies that the log still contains the backup's last commit. */
const checkSameLog = Effect.fnUntraced(function* (
  { folder }: StateStore,
  { last, hash }: StoredLog,
) {
  const log = yield* Log
  const found = yield* Stream.runHead(log.entries("", last - 1))
  const is_same = Option.exists(found, (one) => one.position === last && one.hash === hash)
  if (!is_same) return yield* unusable(anotherLog(folder))
})

/** The event that started the current generation, which is not the first. */
const generationStart = Effect.gen(function* () {
  const log = yield* Log
  const event = (yield* log.load(generation_stream))?.commit.events.at(-1)
  return yield* Schema.decodeUnknownEffect(GenerationEvent)(event)
})

/** The Merkle tree over all commits before the generation's own first commit. */
const treeBefore = Effect.fnUntraced(function* ({ number }: Generation) {
  return number === 1 ? empty_tree : openTree((yield* generationStart).tree)
})

/** Backs up the newest generation of the log; earlier ones are files of the data folder. */
const commits = Effect.fnUntraced(function* ({ store, folder, log: of }: BackupOptions) {
  const bus = yield* NatsConnection
  const notary = yield* Notary
  const { current } = yield* findGenerations(bus.jsm, of.name)
  const { number: generation, stream: name, base, copies, head } = current
  const earlier = store.manifest?.log
  if (earlier !== undefined) yield* checkSameLog(store, earlier)
  const before = earlier?.generation === generation ? earlier : undefined
  if (before !== undefined) yield* checkParts(store, before)

  const tree = before === undefined ? yield* treeBefore(current) : openTree(before.tree)
  const growth = makeTreeBuilder(digest, tree)
  let hash = before?.hash ?? ""
  const each = ({ sequence: position, subject, ...content }: CopiedMessage) => {
    if (position <= base) return
    hash = sha256(decodeBytes(content))
    growth.add(leafOf(digest, { position, stream: subject.slice(head.length + 1), hash }))
  }
  const until = yield* lastOf(bus, name)
  if (until === 0) return yield* unusable(`The log of ${folder} is empty: is it the right folder?`)
  const range = { filter: `${head}.>`, after: before?.last ?? 0, until }
  const more = yield* addPart(store, { bus, name, label: "commits", range, each })
  const after = growth.tree()
  if (after.size !== until) {
    return yield* unusable(`The log has ${until} commits, and ${after.size} were read.`)
  }
  return {
    ...extended(before, more, until),
    generation,
    base,
    copies,
    hash,
    tree: sealedTree(after),
    key: notary.key.verifier,
    head: notary.sign({ size: until, root: rootOf(digest, after) }),
  } satisfies StoredLog
})

/** Backs up a file of the data folder unless it is unchanged; undefined if it is gone. */
const fileOf = Effect.fnUntraced(function* (
  { store, folder }: BackupOptions,
  { path, mode }: FoundFile,
  known: StoredFile | undefined,
) {
  return yield* Effect.tryPromise({
    try: async () => {
      try {
        const is_held = known !== undefined && (await store.holds(known))
        if (is_held && known.sha256 === (await digestOf(folder, path))) return { ...known, mode }
        return await store.put(path, mode, bytesOf(folder, path))
      } catch (cause) {
        // Removed after the folder was listed, for example a secret.
        if (isGone(cause, join(folder, path))) return undefined
        throw cause
      }
    },
    catch: (cause) => unusable(`${path} cannot be copied: ${causeText(cause)}`),
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
  const { folder, is_alone, store } = options
  const known = new Map(store.manifest?.files.map((one) => [one.path, one]))
  const found = yield* Effect.tryPromise({
    try: () => includedFiles(folder, store.folder),
    catch: (cause) => unusable(`${folder} cannot be listed: ${causeText(cause)}`),
  })
  const selected = found.filter(({ path }) => is_alone || !isSpool(path))
  const stored = yield* Effect.forEach(selected, (one) => fileOf(options, one, known.get(one.path)))
  return stored.filter((one) => one !== undefined)
})

/** Verifies that the files include all earlier generations, with the checksums of their indexes. */
const checkEarlier = Effect.fnUntraced(function* (
  { log: { folder } }: BackupOptions,
  of: Pick<StateManifest, "files" | "log">,
) {
  if (of.log.generation === 1) return
  const start = yield* generationStart
  yield* Effect.try({
    try: () => verifyArchives(of, start),
    catch: (cause) => (cause instanceof StateUnusable ? cause : unusable(causeText(cause))),
  })
  for (let number = 1; number < of.log.generation; number++) {
    const { sha256 } = yield* archiveIndex(folder, number)
    const path = `log/generation-${number}.ndjson.gz`
    if (of.files.some((one) => one.path === path && one.sha256 === sha256)) continue
    return yield* unusable(`${path} does not match its index: restore the right file.`)
  }
})

/** Writes a backup or updates an existing one. Fails with StateUnusable or LogUnavailable. */
export const backupState = Effect.fnUntraced(function* (options: BackupOptions) {
  const { store, almanac, onProgress } = options
  const cursors = yield* webhooks(options)
  yield* onProgress(`webhooks: ${cursors.messages} cursors`)
  const published = yield* events(options)
  yield* onProgress(`events: ${published.last} published`)
  const log = yield* commits(options)
  yield* onProgress(`log: generation ${log.generation} up to position ${log.last}`)
  const stored = yield* files(options)
  yield* checkEarlier(options, { log, files: stored })
  yield* onProgress(`files: ${stored.length} of the data folder`)
  const manifest: StateManifest = {
    id: randomUUID(),
    almanac,
    log,
    events: published,
    webhooks: cursors,
    created_at: DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis)),
    files: stored,
  }
  yield* store.commit(manifest)
  return manifest
})
