/**
 * What a publisher gave to ask it with the next time: a small file for each feed, which holds no
 * data and no key. Without it, or with one that cannot be read, everything is asked for again.
 */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import type { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import type { Validators } from "#adapters/capital-pressure/feeds/client.ts"
import { type FeedRequest, feedFailed } from "#adapters/capital-pressure/feeds/plan.ts"
import { findBounded, removeFile, syncFolder, writePrivate } from "#files"

/**
 * To be raised whenever an answer is read otherwise than before: what is unchanged at the
 * publisher then still is new here.
 */
const reading = 1

const file_bytes_max = 65_536

const Known = Schema.Struct({
  etag: Schema.optionalKey(Schema.String),
  last_modified: Schema.optionalKey(Schema.String),
  /** Of the answer: some publishers give nothing to ask them with. */
  sha256: Schema.String,
})
export type Known = typeof Known.Type

const File = Schema.Struct({
  reading: Schema.Literal(reading),
  answers: Schema.Record(Schema.String, Known),
})

/** By the key of what was asked. */
export type Answers = Readonly<Record<string, Known>>

/** Names a request and the first day that was wanted of its answer; its secret is not in it. */
export const keyOf = ({ publisher, path }: FeedRequest, since: number | undefined) =>
  digestOf(new TextEncoder().encode(`${publisher} ${path} since ${since ?? "ever"}`))

export const digestOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

export const known = ({ etag, last_modified }: Validators, sha256: string): Known => ({
  ...(etag !== undefined && { etag }),
  ...(last_modified !== undefined && { last_modified }),
  sha256,
})

const fileOf = (folder: string, id: string) => join(folder, `${id}.json`)

export const loadAnswers = (folder: string, id: string): Effect.Effect<Answers> =>
  findBounded(fileOf(folder, id), file_bytes_max).pipe(
    Effect.map(Option.flatMap(Schema.decodeUnknownOption(Schema.fromJsonString(File)))),
    Effect.map((file) =>
      Option.getOrElse(
        Option.map(file, ({ answers }) => answers),
        () => ({}),
      ),
    ),
    Effect.orElseSucceed((): Answers => ({})),
  )

/** One that cannot be written costs another download, and nothing else. */
export const keepAnswers = (folder: string, id: string, answers: Answers): Effect.Effect<void> =>
  Effect.ignore(writePrivate(fileOf(folder, id), JSON.stringify({ reading, answers })))

/**
 * For good, also where the power fails right after. Where it cannot be removed it would stand for
 * other values than are stored: FeedFailed.
 */
export const forgetAnswers = (folder: string, id: string): Effect.Effect<void, FeedFailed> =>
  removeFile(fileOf(folder, id)).pipe(
    Effect.mapError(({ code }) =>
      feedFailed(fileOf(folder, id), `cannot be removed (${code})`, "Remove it and ingest again."),
    ),
    // There is no such folder before the first answer that was kept.
    Effect.andThen(Effect.ignore(Effect.tryPromise(() => syncFolder(folder)))),
  )
