/**
 * Archived generations of the log: files of compressed JSON lines, one commit each.
 *
 * A file is a sequence of gzip members, so that `zcat` reads all of it and we can read single
 * blocks. Its index has the offset of each block and the kinds of aggregates in it. The index is
 * written last: without it there is no archive.
 */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import { promisify } from "node:util"
import { gunzip, gzip } from "node:zlib"
import { Effect, Schema, Stream } from "effect"
import {
  type Entry,
  isPartOf,
  isReadable,
  LogUnavailable,
  type Part,
  parseStream,
} from "#events/log.ts"
import { commit_mark, lineHead, unreadableLine } from "#events/log-line.ts"
import { readBounded, syncFolder, writePrivate } from "#files"
import { causeText } from "#schemas/cause-text.ts"
import { Position, Sha256 } from "#schemas/system/checkpoint.ts"
import { decode } from "../commits/codec.ts"

/** Maximum commits and bytes of one block: a reader takes about 10 ms for it. */
const block_commits_max = 1000
const block_bytes_max = 1024 * 1024

/** Maximum size of an unpacked block: a full one plus one commit of maximum size. */
const unpacked_bytes_max = block_bytes_max + 2 * 1024 * 1024

/** Maximum size of an index: about 300,000 blocks. */
const index_bytes_max = 64 * 1024 * 1024

const zip = promisify(gzip)
const unzip = promisify(gunzip)

const Block = Schema.Struct({
  first: Position,
  last: Position,
  offset: Schema.Int,
  bytes: Schema.Int,
  /** `<service>.<aggregate>` of the commits in it. */
  kinds: Schema.Array(Schema.String),
})

export const ArchiveIndex = Schema.Struct({
  format: Schema.Literal("almanac-log-archive-1"),
  generation: Schema.Int,
  first: Position,
  last: Position,
  bytes: Schema.Int,
  sha256: Sha256,
  blocks: Schema.Array(Block),
})
export type ArchiveIndex = typeof ArchiveIndex.Type

/** A commit as stored, with its position. */
export interface StoredCommit {
  readonly position: number
  readonly stream: string
  readonly bytes: Uint8Array
}

const dataPath = (folder: string, generation: number) =>
  join(folder, `generation-${generation}.ndjson.gz`)
const indexPath = (folder: string, generation: number) =>
  join(folder, `generation-${generation}.json`)

/** A commit's line, in the format of an export, with the stored bytes unchanged. */
const lineOf = ({ position, stream, bytes }: StoredCommit) => {
  const entry = decode(position, stream, bytes)
  if (!isReadable(entry)) return Buffer.from(unreadableLine(entry))
  return Buffer.concat([Buffer.from(lineHead(entry)), bytes, line_end])
}
const line_end = Buffer.from("}\n")

type Place = Pick<StoredCommit, "position" | "stream">

/** Parses a line; decodes its entry only if it is wanted. */
const entriesOfLine = (line: string, isWanted: (place: Place) => boolean): ReadonlyArray<Entry> => {
  const at = line.indexOf(commit_mark)
  // Written by `lineOf`; any other line fails to parse as JSON.
  const place = JSON.parse(at < 0 ? line : `${line.slice(0, at)}}`) as Place & {
    readonly bytes?: string
  }
  if (!isWanted(place)) return []
  const bytes =
    at < 0
      ? Buffer.from(place.bytes ?? "", "base64")
      : Buffer.from(line.slice(at + commit_mark.length, -1))
  return [decode(place.position, place.stream, bytes)]
}

/** Writes an archive: blocks as they fill, then the index. The archive exists only after `end`. */
export const openArchive = async (folder: string, generation: number) => {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // The folder may be new: its files are durable only once its own entry is synced.
  await syncFolder(dirname(folder))
  const path = dataPath(folder, generation)
  const partial = `${path}.tmp`
  const file = await open(partial, "w", 0o600)
  const hash = createHash("sha256")
  const blocks: Array<typeof Block.Type> = []
  let offset = 0
  let lines: Array<Buffer> = []
  let size = 0
  let first = 0
  let last = 0
  let kinds = new Set<string>()

  const flush = async () => {
    if (lines.length === 0) return
    const packed = await zip(Buffer.concat(lines))
    await file.writeFile(packed)
    hash.update(packed)
    blocks.push({ first, last, offset, bytes: packed.length, kinds: [...kinds].sort() })
    offset += packed.length
    lines = []
    size = 0
    kinds = new Set()
  }
  return {
    add: async (commit: StoredCommit) => {
      const line = lineOf(commit)
      if (lines.length === 0) first = commit.position
      lines.push(line)
      last = commit.position
      size += line.length
      kinds.add(parseStream(commit.stream).name)
      if (lines.length >= block_commits_max || size >= block_bytes_max) await flush()
    },
    /** Syncs and publishes the file, then writes the index. */
    end: async (): Promise<ArchiveIndex> => {
      await flush()
      await file.sync()
      await file.close()
      await rename(partial, path)
      await syncFolder(folder)
      const index: ArchiveIndex = {
        format: "almanac-log-archive-1",
        generation,
        first: blocks[0]?.first ?? 1,
        last,
        bytes: offset,
        sha256: hash.digest("hex"),
        blocks,
      }
      await Effect.runPromise(writePrivate(indexPath(folder, generation), JSON.stringify(index)))
      return index
    },
    /** Discards the unfinished file. */
    discard: async () => {
      await file.close()
      await rm(partial, { force: true })
    },
  }
}

const decodeIndex = Schema.decodeUnknownEffect(Schema.fromJsonString(ArchiveIndex))

const unavailable = (folder: string, generation: number, why: string) =>
  new LogUnavailable({
    detail: `Generation ${generation} of the log is not in ${folder}: ${why}. Restore its files.`,
  })

/** The index of an archived generation; LogUnavailable if it is missing. */
export const archiveIndex = (folder: string, generation: number) =>
  readBounded(indexPath(folder, generation), index_bytes_max).pipe(
    Effect.flatMap(decodeIndex),
    Effect.mapError((cause) => unavailable(folder, generation, cause.message)),
  )

/** The index of an archived generation; LogUnavailable if its file is missing or truncated. */
export const completeArchive = (folder: string, generation: number) =>
  archiveIndex(folder, generation).pipe(
    Effect.tap(({ bytes }) =>
      Effect.tryPromise({
        try: async () => {
          const { size } = await stat(dataPath(folder, generation))
          if (size !== bytes) throw new Error("its file is truncated")
        },
        catch: (cause) => unavailable(folder, generation, String(cause)),
      }),
    ),
  )

/** Whether a generation is archived up to `base`, with the checksum of its index. */
export const isArchived = (folder: string, generation: number, base: number) =>
  archiveIndex(folder, generation).pipe(
    Effect.flatMap(({ last, sha256 }) =>
      Effect.tryPromise(async () => {
        const hash = createHash("sha256")
        await pipeline(createReadStream(dataPath(folder, generation)), hash)
        return last === base && hash.digest("hex") === sha256
      }),
    ),
    Effect.catch(() => Effect.succeed(false)),
  )

const readBlock = async (
  file: FileHandle,
  { offset, bytes }: typeof Block.Type,
  isWanted: (place: Place) => boolean,
) => {
  const packed = Buffer.alloc(bytes)
  const { bytesRead } = await file.read(packed, 0, bytes, offset)
  if (bytesRead !== bytes) throw new Error("its file is truncated")
  const text = (await unzip(packed, { maxOutputLength: unpacked_bytes_max })).toString()
  return text
    .trimEnd()
    .split("\n")
    .flatMap((line) => entriesOfLine(line, isWanted))
}

const mayHold = (part: Part, kinds: ReadonlyArray<string>) =>
  part === "" || kinds.some((kind) => isPartOf(part, kind) || isPartOf(kind, part))

/** Reads the entries of a part in one archived generation after a position, oldest first. */
export const readArchive = (
  folder: string,
  generation: number,
  part: Part,
  after: number,
): Stream.Stream<Entry, LogUnavailable> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const failed = (cause: unknown) => unavailable(folder, generation, causeText(cause))
      const { blocks } = yield* archiveIndex(folder, generation)
      const file = yield* Effect.acquireRelease(
        Effect.tryPromise({ try: () => open(dataPath(folder, generation)), catch: failed }),
        (opened) => Effect.promise(() => opened.close()),
      )
      const isWanted = ({ position, stream }: Place) => position > after && isPartOf(part, stream)
      return Stream.fromIterable(
        blocks.filter(({ last, kinds }) => last > after && mayHold(part, kinds)),
      ).pipe(
        Stream.mapEffect((block) =>
          Effect.tryPromise({ try: () => readBlock(file, block, isWanted), catch: failed }),
        ),
        Stream.flatMap((commits) => Stream.fromIterable(commits)),
      )
    }),
  )
