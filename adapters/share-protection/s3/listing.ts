/** What a bucket holds, page by page: the objects that are there, and all that were. */
import { Buffer } from "node:buffer"
import { ListObjectsV2Command, ListObjectVersionsCommand } from "@aws-sdk/client-s3"
import { Effect, Option, Stream } from "effect"
import { endless, type OpenBucket, request } from "#adapters/share-protection/s3/client.ts"
import type { S3Failure } from "#adapters/share-protection/s3/failure.ts"

/** A version of an object, or the mark that it was deleted. */
export interface Version {
  readonly key: string
  readonly version_id: string
  readonly is_latest: boolean
  readonly is_marker: boolean
  readonly bytes: number
  /** Epoch milliseconds. */
  readonly modified: number
}

/** All versions of one key, newest first; its marks among them, but not in their order. */
export interface Versions {
  readonly key: string
  readonly versions: ReadonlyArray<Version>
  readonly markers: ReadonlyArray<Version>
  /** Whether the object is there: its newest version is none that says it was deleted. */
  readonly is_live: boolean
}

/** A repository of 4 MB packs has 40 TB then. */
const pages_max = 10_000

/** Keys of the objects that are there. */
export const liveKeys = (s3: OpenBucket): Stream.Stream<string, S3Failure> =>
  paged((ContinuationToken: string | undefined) =>
    Effect.map(
      request(s3, (client, options) =>
        client.send(new ListObjectsV2Command({ Bucket: s3.name, ContinuationToken }), options),
      ),
      ({ Contents = [], IsTruncated, NextContinuationToken }) => ({
        found: Contents.flatMap(({ Key }) => Key ?? []),
        next: IsTruncated === true ? NextContinuationToken : undefined,
      }),
    ),
  )

/** Each version of each key that begins so, in the keys' order. */
export const versionsBelow = (s3: OpenBucket, prefix: string): Stream.Stream<Version, S3Failure> =>
  paged((markers: Markers | undefined) =>
    Effect.map(
      request(s3, (client, options) =>
        client.send(
          new ListObjectVersionsCommand({ Bucket: s3.name, Prefix: prefix, ...markers }),
          options,
        ),
      ),
      ({ Versions = [], DeleteMarkers = [], IsTruncated, ...next }) => ({
        found: [
          ...Versions.map((listed) => asVersion(listed, false)),
          ...DeleteMarkers.map((listed) => asVersion(listed, true)),
        ].sort(byKey),
        next:
          IsTruncated === true
            ? { KeyMarker: next.NextKeyMarker, VersionIdMarker: next.NextVersionIdMarker }
            : undefined,
      }),
    ),
  )

/** The same, each key with its versions together. */
export const keysBelow = (s3: OpenBucket, prefix: string): Stream.Stream<Versions, S3Failure> =>
  versionsBelow(s3, prefix).pipe(
    Stream.groupAdjacentBy(({ key }) => key),
    Stream.map(([key, all]) => ({
      key,
      versions: all.filter(({ is_marker }) => !is_marker),
      markers: all.filter(({ is_marker }) => is_marker),
      is_live: all.some(({ is_marker, is_latest }) => is_latest && !is_marker),
    })),
  )

interface Markers {
  readonly KeyMarker: string | undefined
  readonly VersionIdMarker: string | undefined
}

interface Listed {
  readonly Key?: string | undefined
  readonly VersionId?: string | undefined
  readonly IsLatest?: boolean | undefined
  readonly Size?: number | undefined
  readonly LastModified?: Date | undefined
}

const asVersion = (listed: Listed, is_marker: boolean): Version => ({
  key: listed.Key ?? "",
  version_id: listed.VersionId ?? "null",
  is_latest: listed.IsLatest === true,
  is_marker,
  bytes: listed.Size ?? 0,
  modified: listed.LastModified?.getTime() ?? 0,
})

/** As S3 sorts: a key may have versions on two pages, and is the last of one and the first then. */
const byKey = (one: Version, other: Version) =>
  Buffer.compare(Buffer.from(one.key), Buffer.from(other.key))

const paged = <A, Next>(
  page: (
    at: Next | undefined,
  ) => Effect.Effect<
    { readonly found: ReadonlyArray<A>; readonly next: Next | undefined },
    S3Failure
  >,
): Stream.Stream<A, S3Failure> =>
  Stream.paginate<{ at: Next | undefined; pages: number }, A, S3Failure>(
    { at: undefined, pages: 0 },
    ({ at, pages }) =>
      pages >= pages_max
        ? Effect.fail(endless())
        : Effect.map(page(at), ({ found, next }) => [
            found,
            next === undefined ? Option.none() : Option.some({ at: next, pages: pages + 1 }),
          ]),
  )
