/**
 * Buckets, the port to what S3 tells of a bucket: whether a repository may live in it, what it
 * takes there, and for how long it is locked.
 *
 * Source: document 2 §4 rule 6, §2 Target; DECISIONS, document 2, preflight, capabilities.
 */
import { Context, type Effect, type Redacted } from "effect"
import type {
  BackendUnavailable,
  TargetPreflightFailed,
  TrustAccessDenied,
} from "#schemas/share-protection/rejection.ts"
import type { Capabilities, PreflightCheck, UsageStats } from "#schemas/share-protection/target.ts"
import type { AddressingMode } from "#schemas/share-protection/target-template.ts"

/** A bucket with the keys to it. */
export interface Bucket {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string | null
  readonly addressing_mode: AddressingMode
  /** Authorities (PEM) by whom alone the endpoint may prove itself; null: those of the system. */
  readonly ca_cert: string | null
  readonly access_key: Redacted.Redacted<string>
  readonly secret_key: Redacted.Redacted<string>
}

/** Which checks count: Shape B asks for versioning by itself. */
export interface PreflightOptions {
  readonly shape: "A" | "B"
}

type Failure = TrustAccessDenied | BackendUnavailable

export class Buckets extends Context.Service<
  Buckets,
  {
    /**
     * Proves the bucket by doing: it writes, reads, and tries to remove a locked canary, whose
     * lock is the shortest there is. Fails with the first check that fails, in the order of
     * `PreflightCheck`; `preflightDetail` words it.
     */
    readonly preflight: (
      bucket: Bucket,
      options: PreflightOptions,
    ) => Effect.Effect<Capabilities, TargetPreflightFailed>
    /**
     * That the bucket answers these keys now, by one small request: an engine with wrong keys
     * tries for minutes.
     */
    readonly reach: (bucket: Bucket) => Effect.Effect<void, Failure>
    /** Counts every version of every object: those that are not the newest apart. */
    readonly usage: (bucket: Bucket) => Effect.Effect<UsageStats, Failure>
    /**
     * Until when every object that a repository needs is locked at least (RFC 3339); null where
     * one of them is not locked, or there is none.
     */
    readonly protectedUntil: (bucket: Bucket) => Effect.Effect<string | null, Failure>
    /**
     * Locks what a repository needs until then, in the mode that the bucket has. It never makes
     * a lock shorter, and leaves the engine's own locks alone.
     */
    readonly extendLocks: (bucket: Bucket, until: string) => Effect.Effect<void, Failure>
    /** For how long the bucket locks what is put into it, in seconds; null where it does not. */
    readonly retention: (bucket: Bucket) => Effect.Effect<number | null, Failure>
    /**
     * Removes for good what the engine's own locks left behind and nothing protects any more: old
     * versions and delete markers below `locks/`. Answers how many.
     */
    readonly purge: (bucket: Bucket) => Effect.Effect<number, Failure>
    /**
     * Until when a snapshot that was forgotten can be brought back (RFC 3339): everything that was
     * deleted and it may need is locked until then at least. Null where it cannot be.
     */
    readonly recoverableUntil: (
      bucket: Bucket,
      engine_snapshot_id: string,
    ) => Effect.Effect<string | null, Failure>
    /**
     * Brings a forgotten snapshot back with all that was deleted of the repository's data and
     * index; other snapshots, keys and locks stay as they are. Again it is without effect. False
     * where the snapshot is gone for good.
     */
    readonly undelete: (
      bucket: Bucket,
      engine_snapshot_id: string,
    ) => Effect.Effect<boolean, Failure>
  }
>()("actors/share-protection/Buckets") {}

/** What TargetPreflightFailed tells, the same from every adapter: the check's name comes first. */
export const preflightDetail = (check: PreflightCheck, why: string) => `${check}: ${why}`
