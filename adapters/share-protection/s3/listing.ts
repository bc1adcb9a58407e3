/** Lists a bucket page by page: its current objects, or all their versions. */
import { Buffer } from "node:buffer"
import { ListObjectsV2Command, ListObjectVersionsCommand } from "@aws-sdk/client-s3"
import { Effect, Option, Stream } from "effect"
import { endlessListing, type OpenBucket, request } from "#adapters/share-protection/s3/client.ts"
import type { S3Failure } from "#adapters/share-protection/s3/failure.ts"

/** A version of an object, or a delete marker. */
export interface Version {
  readonly key: string
  readonly version_id: string
  readonly is_latest: boolean
  readonly is_marker: boolean
  readonly bytes: number
  /** Epoch milliseconds. */
  readonly modified: number
}

/** All versions of a key, newest first, and separately its delete markers. */
export interface Versions {
  readonly key: string
  readonly versions: ReadonlyArray<Version>
  readonly markers: ReadonlyArray<Version>
  /** Whether the object exists, that is, its newest version is not a delete marker. */
  readonly is_live: boolean
}

/** Enough for a repository of 40 TB in packs of 4 MB. */
const pages_max = 10_000

/** Keys of the current objects. */
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

/** All versions of all keys with this prefix, in the order of keys. */
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

/** The same, grouped by key. */
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

interface ListedVersion {
  readonly Key?: string | undefined
  readonly VersionId?: string | undefined
  readonly IsLatest?: boolean | undefined
  readonly Size?: number | undefined
  readonly LastModified?: Date | undefined
}

const asVersion = (listed: ListedVersion, is_marker: boolean): Version => ({
  key: listed.Key ?? "",
  version_id: listed.VersionId ?? "null",
  is_latest: listed.IsLatest === true,
  is_marker,
  bytes: listed.Size ?? 0,
  modified: listed.LastModified?.getTime() ?? 0,
})

/** S3's order of keys. The versions of a key may span two pages. */
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
        ? Effect.fail(endlessListing())
        : Effect.map(page(at), ({ found, next }) => [
            found,
            next === undefined ? Option.none() : Option.some({ at: next, pages: pages + 1 }),
          ]),
  )
