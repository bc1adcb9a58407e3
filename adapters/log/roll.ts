/**
 * Starts a new generation of the log, while nothing else writes to it.
 *
 * If it is killed at any point, either the old or the new generation is complete: the new one is
 * current from its first commit, which is written once the old one is archived and all copies
 * exist. The next roll removes leftovers.
 *
 * Source: DESIGN of the running system, 9.
 */
import type { JetStreamManager } from "@nats-io/jetstream"
import { Clock, DateTime, Effect, Layer, Result, Schema, Stream } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { host } from "#actors/host.ts"
import { firstRoot, nextRoot } from "#actors/system/checkpoint.ts"
import { generation_id, generation_stream, Generation as Kind } from "#actors/system/generation.ts"
import { empty_tree, leafOf, makeTreeBuilder, openTree, sealedTree } from "#actors/system/tree.ts"
import { ensureStream, NatsConnection, requester, watchLink } from "#bus"
import { type Entry, Log } from "#events/log.ts"
import { LogGuard } from "#events/log-guard.ts"
import { GenerationEvent } from "#events/system/generation.ts"
import type { Delivered, Source } from "#journal"
import {
  type ArchiveIndex,
  append_timeout_ms,
  decode,
  digest,
  type Encoded,
  endedMark,
  findGenerations,
  type Generation,
  type GenerationsOptions,
  isArchived,
  logJetStream,
  logStreamConfig,
  nextGeneration,
  openArchive,
  optionsOf,
  positionOf,
  readArchive,
  readMessages,
  sha256,
  writer,
} from "#journal"
import { StartGeneration } from "#schemas/system/generation.ts"

/** Maximum copies and bytes of one write, equal to the log's own groups. */
const group_commits_max = 256
const group_bytes_max = 4 * 1024 * 1024

/** The roll failed. The log is complete, in the old generation or in the new one. */
export class RollFailed extends Schema.TaggedError<RollFailed>()("RollFailed", {
  message: Schema.String,
}) {}

export interface RollOptions extends GenerationsOptions {
  /** Called after each step with its name, so that tests can stop there. */
  readonly after?: (step: string) => Effect.Effect<void, RollFailed>
}

/** Result of a roll. */
export interface RollResult {
  readonly generation: number
  /** The last position of the previous generation. */
  readonly base: number
  readonly aggregates: number
  /** Bytes of the previous generation's archive; undefined if this finished an earlier roll. */
  readonly archive_bytes: number | undefined
}

const failed = (message: string) => new RollFailed({ message })

const attempt = <A>(action: string, run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => failed(`${action}: ${String(cause)}`) })

/**
 * Computes the hash chain and the Merkle tree over all commits, starting at the last generation.
 */
const logHasher = Effect.fnUntraced(function* (log: Log["Service"]) {
  const last = yield* log.load(generation_stream)
  const event = last?.commit.events.at(-1)
  const previous =
    event === undefined ? undefined : yield* Schema.decodeUnknownEffect(GenerationEvent)(event)
  let root = previous?.root ?? firstRoot(sha256)
  const growth = makeTreeBuilder(
    digest,
    previous === undefined ? empty_tree : openTree(previous.tree),
  )
  return {
    add: (entry: Entry) => {
      root = nextRoot(sha256, root, entry)
      growth.add(leafOf(digest, entry))
    },
    end: () => ({ root, tree: sealedTree(growth.tree()) }),
  }
})

/** Archives a generation's commits and reads them back. */
const archive = Effect.fnUntraced(function* (
  { folder }: GenerationsOptions,
  source: Source,
  { number, head, base }: Generation,
  last: number,
  log: Log["Service"],
) {
  const written = yield* logHasher(log)
  const out = yield* Effect.acquireRelease(
    attempt("The archive cannot be written", () => openArchive(folder, number)),
    ({ discard: drop }) => Effect.promise(drop),
  )
  yield* readMessages(source, {
    filter: `${head}.>`,
    after: base,
    until: Effect.succeed(last),
  }).pipe(
    Stream.runForEach(({ position, message }) => {
      const stream = message.subject.slice(head.length + 1)
      written.add(decode(position, stream, message.data))
      const commit = { position, stream, bytes: message.data }
      return attempt("The archive cannot be written", () => out.add(commit))
    }),
  )
  const index = yield* attempt("The archive cannot be written", out.end)

  const read = yield* logHasher(log)
  yield* Stream.runForEach(readArchive(folder, number, "", base), (recorded) =>
    Effect.sync(() => read.add(recorded)),
  )
  const sealed = read.end()
  if (sealed.root !== written.end().root || sealed.tree.size !== last) {
    return yield* failed("The archive differs from the log.")
  }
  return { index, sealed }
})

/** The last commit of each aggregate, in order, in groups for writing. */
const copies = (source: Source, { head, base }: Generation, last: number) =>
  readMessages(source, {
    filter: `${head}.>`,
    after: 0,
    until: Effect.succeed(last),
    lasts: true,
  }).pipe(
    Stream.map(
      ({ position, message }: Delivered): Encoded => ({
        stream: message.subject.slice(head.length + 1),
        expected: 0,
        bytes: message.data,
        copy_of: positionOf(base, position, message.headers),
      }),
    ),
    Stream.mapArray((batch) => groups(batch)),
  )

/** Splits commits into groups within the limits of one write. */
const groups = (all: ReadonlyArray<Encoded>): [Array<Encoded>, ...Array<Array<Encoded>>] => {
  let group: Array<Encoded> = []
  const result: [Array<Encoded>, ...Array<Array<Encoded>>] = [group]
  let bytes = 0
  for (const one of all) {
    bytes += one.bytes.length
    if (group.length >= group_commits_max || (group.length > 0 && bytes > group_bytes_max)) {
      group = []
      result.push(group)
      bytes = one.bytes.length
    }
    group.push(one)
  }
  return result
}

/** Writes the copies to the new stream, which must end exactly at the last position. */
const copyInto = Effect.fnUntraced(function* (
  source: Source,
  from: Generation,
  to: Generation,
  after: NonNullable<RollOptions["after"]>,
) {
  const { connection, jsm, link } = source
  const send = yield* requester(connection, link, append_timeout_ms)
  const write = writer(connection, send, to)
  yield* Stream.runForEach(copies(source, from, to.base), (group) =>
    Effect.gen(function* () {
      const result = yield* Effect.promise(() => write(group))
      if (Result.isFailure(result)) {
        return yield* failed(`A copy cannot be written: ${String(result.failure)}`)
      }
      yield* after("copied a group")
    }),
  )
  const { state } = yield* attempt("The new stream does not respond", () =>
    jsm.streams.info(to.stream),
  )
  if (state.last_seq !== to.base || state.messages !== to.copies) {
    return yield* failed(
      `Found ${state.messages} copies up to ${state.last_seq}, expected ${to.copies} up to ` +
        `${to.base}. ` +
        "Another process is writing to the log.",
    )
  }
})

/** Writes the first commit of the new generation, which makes it current. */
const startGeneration = Effect.fnUntraced(function* (
  generation: Generation,
  sealed: { readonly root: string; readonly tree: ReturnType<typeof sealedTree> },
  { bytes, sha256 }: ArchiveIndex,
) {
  const commands = yield* Commands
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const { number, base, copies: aggregates } = generation
  const command = StartGeneration.make({
    generation: number,
    base,
    aggregates,
    ...sealed,
    archive: { bytes, sha256 },
  })
  const origin = { command_id: `generation-${number}`, actor: "process:log-roll", at }
  const position = yield* commands.send(origin, address(Kind, generation_id, command))
  if (position !== base + 1)
    throw new Error(`The generation starts at ${position}, not ${base + 1}.`)
})

/** Verifies that an old stream is archived up to the start of the next, before it is removed. */
const verifyArchived = Effect.fnUntraced(function* (
  { folder }: GenerationsOptions,
  jsm: JetStreamManager,
  { number, stream }: Generation,
  { base }: Generation,
) {
  const { state } = yield* attempt("The log does not respond", () => jsm.streams.info(stream))
  // Written by a release without generations: those commits are in no archive.
  if (state.last_seq > base) {
    return yield* failed(`Generation ${number} ended at ${base} but was written to afterwards.`)
  }
  if (yield* isArchived(folder, number, base)) return
  return yield* failed(`The file of generation ${number} in ${folder} is incomplete.`)
})

const remove = (jsm: JetStreamManager, stream: string) =>
  attempt(`The stream ${stream} cannot be removed`, () => jsm.streams.delete(stream))

/** Starts a generation, or finishes an interrupted roll. Fails with RollFailed. */
export const rollLog = Effect.fnUntraced(function* (options: RollOptions) {
  const { after = () => Effect.void, name } = options
  const { connection, jsm } = yield* NatsConnection
  const { current, others } = yield* findGenerations(jsm, name)
  for (const other of others) {
    if (other.number < current.number) yield* verifyArchived(options, jsm, other, current)
    yield* remove(jsm, other.stream)
  }
  if (current.number > 1) yield* ensureStream(jsm, endedMark(name))
  yield* after("removed leftovers")
  if (others.some(({ number }) => number < current.number)) return finishedEarlier(current)

  const context = yield* Layer.build(logJetStream(optionsOf(options, current)))
  const log = yield* Effect.provideContext(Log, context)
  // Commits that are missing now would be missing from the archive too.
  const problem = (yield* LogGuard).problem()
  if (problem !== undefined) return yield* failed(problem)
  const link = yield* watchLink(connection)
  const source: Source = { connection, jsm, link, name: current.stream }
  const { state } = yield* attempt("The log does not respond", () =>
    jsm.streams.info(current.stream),
  )
  const next = nextGeneration(name, current, state.last_seq, state.num_subjects ?? 0)
  if (next.base <= current.base + 1) {
    return yield* failed("No commits were written since the last generation started.")
  }
  const { index, sealed } = yield* archive(options, source, current, next.base, log)
  yield* after("archived")

  const to = optionsOf(options, next)
  yield* ensureStream(jsm, logStreamConfig(to))
  yield* after("created the stream")
  yield* copyInto(source, current, next, after)
  yield* after("copied")
  const info = yield* attempt("The log does not respond", () => jsm.streams.info(current.stream))
  if (info.state.last_seq !== next.base) {
    return yield* failed("Another process is writing to the log.")
  }
  yield* startGeneration(next, sealed, index).pipe(
    Effect.provide(Layer.provide(host, Layer.fresh(logJetStream(to)))),
  )
  yield* after("began")
  yield* remove(jsm, current.stream)
  yield* after("removed the old stream")
  yield* ensureStream(jsm, endedMark(name))
  const { number: generation, base, copies: aggregates } = next
  return { generation, base, aggregates, archive_bytes: index.bytes } satisfies RollResult
}, Effect.scoped)

const finishedEarlier = ({ number, base, copies: aggregates }: Generation): RollResult => ({
  generation: number,
  base,
  aggregates,
  archive_bytes: undefined,
})
