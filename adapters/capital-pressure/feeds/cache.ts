/**
 * Stores HTTP validators and hashes of the last responses, one file per feed without data or keys.
 * If the file is missing or unreadable, everything is downloaded again.
 */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import type { FeedFailed } from "#actors/capital-pressure/feeds.ts"
import type { Validators } from "#adapters/capital-pressure/feeds/client.ts"
import { type FeedRequest, feedFailed } from "#adapters/capital-pressure/feeds/plan.ts"
import { findBounded, removeFile, syncFolder, writePrivate } from "#files"

/**
 * Increase this whenever parsing changes, so that unchanged responses are parsed again.
 */
const parser_version = 1

const file_bytes_max = 65_536

const KnownResponse = Schema.Struct({
  etag: Schema.optionalKey(Schema.String),
  last_modified: Schema.optionalKey(Schema.String),
  /** The hash of the response, because some publishers send no validators. */
  sha256: Schema.String,
})
export type KnownResponse = typeof KnownResponse.Type

const File = Schema.Struct({
  reading: Schema.Literal(parser_version),
  answers: Schema.Record(Schema.String, KnownResponse),
})

/** By request key. */
export type KnownResponses = Readonly<Record<string, KnownResponse>>

/** Identifies a request and its first day, without the secret. */
export const keyOf = ({ publisher, path }: FeedRequest, since: number | undefined) =>
  digestOf(new TextEncoder().encode(`${publisher} ${path} since ${since ?? "ever"}`))

export const digestOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

export const knownResponse = (
  { etag, last_modified }: Validators,
  sha256: string,
): KnownResponse => ({
  ...(etag !== undefined && { etag }),
  ...(last_modified !== undefined && { last_modified }),
  sha256,
})

const fileOf = (folder: string, id: string) => join(folder, `${id}.json`)

export const loadResponses = (folder: string, id: string): Effect.Effect<KnownResponses> =>
  findBounded(fileOf(folder, id), file_bytes_max).pipe(
    Effect.map(Option.flatMap(Schema.decodeUnknownOption(Schema.fromJsonString(File)))),
    Effect.map((file) =>
      Option.getOrElse(
        Option.map(file, ({ answers }) => answers),
        () => ({}),
      ),
    ),
    Effect.orElseSucceed((): KnownResponses => ({})),
  )

/** Ignores write errors, which only cause another download. */
export const storeResponses = (
  folder: string,
  id: string,
  answers: KnownResponses,
): Effect.Effect<void> =>
  Effect.ignore(
    writePrivate(fileOf(folder, id), JSON.stringify({ reading: parser_version, answers })),
  )

/**
 * Removes the file durably. Fails if that is impossible, because the validators would not match the
 * stored values.
 */
export const forgetResponses = (folder: string, id: string): Effect.Effect<void, FeedFailed> =>
  removeFile(fileOf(folder, id)).pipe(
    Effect.mapError(({ code }) =>
      feedFailed(fileOf(folder, id), `cannot be removed (${code})`, "Delete it and ingest again."),
    ),
    // The folder does not exist before the first download.
    Effect.andThen(Effect.ignore(Effect.tryPromise(() => syncFolder(folder)))),
  )
