/**
 * Restores a state backup into an empty data folder and bus.
 *
 * Until the restore is complete two markers prevent every start: a file in the folder, and metadata
 * of the log's stream for other processes on the bus. An interrupted restore resumes when repeated.
 *
 * Source: docs/decisions/0143.
 */
import { existsSync } from "node:fs"
import { chmod, readdir } from "node:fs/promises"
import { join } from "node:path"
import type { StreamInfo } from "@nats-io/jetstream"
import { Clock, DateTime, Effect, Layer, Option, Schema } from "effect"
import { v7 } from "uuid"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { Restorations, restoration_id } from "#actors/system/restoration.ts"
import { restoring_file } from "#adapters/data-folder/lock.ts"
import { publishedEventsJetStream } from "#adapters/published/jetstream.ts"
import { events_stream } from "#adapters/published/stream-name.ts"
import { putFile } from "#adapters/state/files.ts"
import { generationOf, messagesOf } from "#adapters/state/proof.ts"
import { type StateStore, StateUnusable, unusable } from "#adapters/state/store.ts"
import { importMessages } from "#adapters/state/stream-copy.ts"
import {
  webhook_cursors,
  webhookCursorsJetStream,
} from "#adapters/system/webhook/cursors-jetstream.ts"
import { EventsConnection, ensureStream, NatsConnection, undefinedIfMissing } from "#bus"
import { findBounded, makeFolder, removeFile, writePrivate } from "#files"
import {
  endedMark,
  findGenerations,
  type Generation,
  type GenerationsOptions,
  logGenerations,
  logStreamConfig,
  optionsOf,
  restoring_key,
  sha256,
} from "#journal"
import { causeText } from "#schemas/cause-text.ts"
import { Token } from "#schemas/message.ts"
import { RecordRestoration } from "#schemas/system/restoration.ts"
import type { StateManifest, StoredLog } from "#schemas/system/state-backup.ts"

export interface RestoreOptions {
  readonly store: StateStore
  readonly manifest: StateManifest
  /** The data folder. */
  readonly folder: string
  readonly log: GenerationsOptions
  /** Whether only the folder was lost and the bus still has the log. */
  readonly is_files_only?: boolean
  readonly onProgress: (line: string) => Effect.Effect<void>
  /** Called after each step with its name, so that tests can stop there. */
  readonly after?: (step: string) => Effect.Effect<void, StateUnusable>
}

const attempt = <A>(action: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      cause instanceof StateUnusable
        ? cause
        : unusable(`${action}: ${causeText(cause)}. Repeat restore-state: it continues from here.`),
  })

/** `is_written`: everything is restored, and the log may already be open to others. */
const Marker = Schema.fromJsonString(
  Schema.Struct({ backup_id: Schema.String, restore_id: Token, is_written: Schema.Boolean }),
)
type Marker = typeof Marker.Type
const mark_bytes_max = 4096

const markerPath = (folder: string) => join(folder, restoring_file)

/** The unfinished restore in this folder, if any. */
const findMarker = (folder: string) =>
  findBounded(markerPath(folder), mark_bytes_max).pipe(
    Effect.map(Option.flatMap((text) => Schema.decodeUnknownOption(Marker)(text))),
    Effect.map(Option.getOrUndefined),
    Effect.mapError(({ message }) => unusable(message)),
  )

const writeMarker = (folder: string, value: Marker) =>
  writePrivate(markerPath(folder), Schema.encodeSync(Marker)(value)).pipe(
    Effect.mapError(({ message }) => unusable(message)),
  )

/** The unfinished restore of this backup in the folder; fails if it contains anything else. */
export const checkClaimable = Effect.fnUntraced(function* (
  folder: string,
  manifest: StateManifest,
) {
  const marker = yield* findMarker(folder)
  if (marker !== undefined && marker.backup_id !== manifest.id) {
    return yield* unusable(
      `The restore of another backup into ${folder} was not finished: finish it, or delete the ` +
        "folder.",
    )
  }
  const names = yield* attempt(`${folder} cannot be used`, async () =>
    existsSync(folder) ? await readdir(folder) : [],
  )
  if (marker === undefined && names.length > 0) {
    return yield* unusable(
      `${folder} is not empty: move it away, or choose another folder with ALMANAC_DATA_DIR.`,
    )
  }
  return marker
})

/** Claims a folder that is empty or has an unfinished restore of this backup; rejects others. */
export const claimFolder = Effect.fnUntraced(function* (folder: string, manifest: StateManifest) {
  const marker = yield* checkClaimable(folder, manifest)
  // The operator may have created it with a permissive umask.
  yield* attempt(`The mode of ${folder} cannot be restricted`, async () => {
    makeFolder(folder, 0o700)
    await chmod(folder, 0o700)
  })
  if (marker !== undefined) return
  yield* writeMarker(folder, { backup_id: manifest.id, restore_id: v7(), is_written: false })
})

/** State of the restored log on the bus. */
type BusState = "nothing" | "begun" | "done"

const collect = async <A>(all: AsyncIterable<A>) => {
  const result: Array<A> = []
  for await (const one of all) result.push(one)
  return result
}

const markOf = ({ config }: StreamInfo) => config.metadata?.[restoring_key]

/** Checks that the bus is empty or has an unfinished restore of this backup. */
const busState = Effect.fnUntraced(function* (
  { manifest, folder, log: { name } }: RestoreOptions,
  generation: Generation,
) {
  const core = yield* NatsConnection
  const events = yield* EventsConnection
  const isOurs = (info: StreamInfo) =>
    info.config.name === name || info.config.name.startsWith(`${name}_`)
  const streams = yield* attempt("The bus does not respond", () => collect(core.jsm.streams.list()))
  const log = streams.find(({ config }) => config.name === generation.stream)
  if (log !== undefined && markOf(log) === manifest.id) return "begun" satisfies BusState
  const is_written = (yield* findMarker(folder))?.is_written === true
  if (is_written && log !== undefined && (yield* logExists(generation, manifest.log))) {
    return "done" satisfies BusState
  }
  if (streams.some(isOurs)) {
    return yield* unusable("The bus already has a log: use a bus without one.")
  }
  const published = yield* attempt("The bus does not respond", () =>
    collect(events.jsm.streams.list()),
  )
  const is_used = published.some(
    ({ config, state }) => config.name === events_stream && state.last_seq > 0,
  )
  if (is_used) return yield* unusable("The bus already has published events.")
  return "nothing" satisfies BusState
})

/** Whether the log on the bus is that of the backup; it may have later commits. */
const logExists = Effect.fnUntraced(function* ({ stream }: Generation, { last, hash }: StoredLog) {
  const { jsm } = yield* NatsConnection
  const found = yield* attempt("The log does not respond", () =>
    jsm.streams.getMessage(stream, { seq: last }).catch(undefinedIfMissing),
  )
  return found !== null && found !== undefined && sha256(found.data) === hash
})

/** The stream's options, with the marker until the restore is complete. */
const streamOf = (options: GenerationsOptions, generation: Generation, id?: string) => {
  const { metadata = {}, ...config } = {
    metadata: undefined,
    ...logStreamConfig(optionsOf(options, generation)),
  }
  const marker = id === undefined ? {} : { [restoring_key]: id }
  return { ...config, metadata: { ...metadata, ...marker } }
}

/** Restores the webhook cursors, one value each. */
const restoreCursors = Effect.fnUntraced(function* ({ store, manifest, log }: RestoreOptions) {
  const { js } = yield* NatsConnection
  yield* Layer.build(webhookCursorsJetStream(log.replicas))
  yield* attempt("Cursors of webhooks cannot be written", async () => {
    for await (const { subject, data } of messagesOf(store, manifest.webhooks)) {
      if (!subject.startsWith(webhook_cursors.subjects.slice(0, -1))) {
        throw unusable(`${subject} is not a cursor of a webhook.`)
      }
      await js.publish(subject, data)
    }
  })
}, Effect.scoped)

const restoreEvents = Effect.fnUntraced(function* ({ store, manifest, log }: RestoreOptions) {
  const { connection, jsm } = yield* EventsConnection
  yield* Layer.build(publishedEventsJetStream(log.replicas))
  // If some are discarded, the publisher rebuilds the stream from the log's anchors.
  if (manifest.events.messages !== manifest.events.last) return
  const to = { connection, jsm, stream: events_stream }
  yield* attempt("Published events cannot be written", () =>
    importMessages(to, messagesOf(store, manifest.events), async () => undefined),
  )
}, Effect.scoped)

const restoreFiles = Effect.fnUntraced(function* (options: RestoreOptions) {
  const { store, manifest, folder, onProgress, after } = options
  for (const file of manifest.files) {
    yield* attempt(`${file.path} cannot be written`, () => putFile(folder, file, store.read(file)))
    yield* after?.("wrote a file") ?? Effect.void
  }
  yield* onProgress(`files: ${manifest.files.length}`)
})

const restoreCommits = Effect.fnUntraced(function* (
  options: RestoreOptions,
  generation: Generation,
) {
  const { store, manifest, onProgress, after } = options
  const { connection, jsm } = yield* NatsConnection
  const to = { connection, jsm, stream: generation.stream }
  yield* attempt("The log cannot be written", () =>
    importMessages(to, messagesOf(store, manifest.log), (sequence) =>
      Effect.runPromise(
        Effect.andThen(
          onProgress(`log: ${sequence} of ${manifest.log.last}`),
          after?.("wrote commits") ?? Effect.void,
        ),
      ),
    ),
  )
  const { state } = yield* attempt("The log does not respond", () =>
    jsm.streams.info(generation.stream),
  )
  if (state.last_seq !== manifest.log.last) {
    return yield* unusable(`The log ends at ${state.last_seq}, not ${manifest.log.last}.`)
  }
})

/** Restores all streams, then opens the log. */
const restoreStreams = Effect.fnUntraced(function* (
  options: RestoreOptions,
  generation: Generation,
  restore_id: string,
) {
  const { manifest, folder, log, onProgress, after = () => Effect.void } = options
  const { jsm } = yield* NatsConnection
  yield* ensureStream(jsm, streamOf(log, generation, manifest.id))
  yield* after("created the log's stream")
  if (generation.number > 1) yield* ensureStream(jsm, endedMark(log.name))
  yield* restoreFiles(options)
  yield* restoreCommits(options, generation)
  yield* after("wrote the log")
  yield* restoreEvents(options)
  yield* onProgress(`events: ${manifest.events.last}`)
  yield* after("wrote the events")
  yield* restoreCursors(options)
  yield* onProgress(`webhooks: ${manifest.webhooks.messages} cursors`)
  yield* after("wrote the cursors")
  yield* writeMarker(folder, { backup_id: manifest.id, restore_id, is_written: true })
  yield* attempt("The log's stream cannot be opened", () =>
    jsm.streams.update(generation.stream, streamOf(log, generation)),
  )
  yield* after("opened the log")
})

/**
 * Records the restore in the log, once. On our own bus it is the first commit. On an external bus a
 * process that starts at this moment may be first, so other processes must be stopped.
 */
const recordRestoration = Effect.fnUntraced(function* (
  { manifest, log }: RestoreOptions,
  restore_id: string,
) {
  const { id: backup_id, created_at: made_at } = manifest
  const { last: position } = manifest.log
  const command = RecordRestoration.make({ restore_id, backup_id, made_at, position })
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const origin = { command_id: `restore-${restore_id}`, actor: "process:restore-state", at }
  yield* Effect.gen(function* () {
    const commands = yield* Commands
    yield* commands.send(origin, address(Restorations, restoration_id, command))
  }).pipe(
    Effect.provide(Layer.provide(host, Layer.fresh(logGenerations(log))), { local: true }),
    Effect.mapError((cause) =>
      unusable(
        `The restore cannot be recorded in the log: ${causeText(cause)}. Repeat restore-state.`,
      ),
    ),
  )
})

/** Restores a verified backup, or resumes. The data folder must be locked and claimed. */
export const restoreState = Effect.fnUntraced(function* (options: RestoreOptions) {
  const { manifest, folder, log, is_files_only = false } = options
  const generation = generationOf(log.name, manifest.log)
  const marker = yield* findMarker(folder)
  if (marker === undefined) return yield* unusable(`${folder} is not claimed for a restore.`)
  if (is_files_only) {
    const { jsm } = yield* NatsConnection
    // No process uses a partially restored log.
    yield* Effect.mapError(findGenerations(jsm, log.name), ({ message }) => unusable(message))
    if (!(yield* logExists(generation, manifest.log))) {
      return yield* unusable(
        "The bus does not have the log of this backup: restore the whole backup.",
      )
    }
    yield* restoreFiles(options)
  } else {
    const found = yield* busState(options, generation)
    if (found !== "done") yield* restoreStreams(options, generation, marker.restore_id)
    yield* recordRestoration(options, marker.restore_id)
    yield* options.after?.("recorded in the log") ?? Effect.void
  }
  yield* removeFile(markerPath(folder)).pipe(Effect.mapError(({ message }) => unusable(message)))
})
