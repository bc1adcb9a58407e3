/**
 * Buckets: the port to S3, for the suitability of a bucket, its usage and its object locks.
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

/** A bucket and its keys. */
export interface Bucket {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string | null
  readonly addressing_mode: AddressingMode
  /** The only certificate authorities (PEM) for the endpoint; null: those of the system. */
  readonly ca_cert: string | null
  readonly access_key: Redacted.Redacted<string>
  readonly secret_key: Redacted.Redacted<string>
}

/** The deployment shape, which decides the required checks: Shape B requires versioning. */
export interface PreflightOptions {
  readonly shape: "A" | "B"
}

type Failure = TrustAccessDenied | BackendUnavailable

export class Buckets extends Context.Service<
  Buckets,
  {
    /**
     * Checks the bucket in practice: writes, reads and tries to remove a canary object with the
     * shortest possible lock. Fails with the first failed check, in the order of `PreflightCheck`;
     * `preflightDetail` formats its detail.
     */
    readonly preflight: (
      bucket: Bucket,
      options: PreflightOptions,
    ) => Effect.Effect<Capabilities, TargetPreflightFailed>
    /**
     * Checks with one small request that the bucket accepts these keys: an engine with wrong keys
     * retries for minutes.
     */
    readonly reach: (bucket: Bucket) => Effect.Effect<void, Failure>
    /** Counts all versions of all objects; noncurrent versions are counted separately. */
    readonly usage: (bucket: Bucket) => Effect.Effect<UsageStats, Failure>
    /**
     * The earliest end of the locks on the objects that a repository needs (RFC 3339); null if one
     * of them is not locked, or if there are none.
     */
    readonly protectedUntil: (bucket: Bucket) => Effect.Effect<string | null, Failure>
    /**
     * Extends the locks on the objects that a repository needs, in the bucket's mode. Never
     * shortens a lock, and ignores the engine's own lock files.
     */
    readonly extendLocks: (bucket: Bucket, until: string) => Effect.Effect<void, Failure>
    /** The bucket's default retention in seconds; null if it has none. */
    readonly retention: (bucket: Bucket) => Effect.Effect<number | null, Failure>
    /**
     * Permanently removes the remains of the engine's lock files that are no longer protected: old
     * versions and delete markers below `locks/`. Returns their number.
     */
    readonly purge: (bucket: Bucket) => Effect.Effect<number, Failure>
    /**
     * The time until which a forgotten snapshot can be recovered (RFC 3339): all deleted objects
     * that it may need are locked at least that long. Null if it cannot be recovered.
     */
    readonly recoverableUntil: (
      bucket: Bucket,
      engine_snapshot_id: string,
    ) => Effect.Effect<string | null, Failure>
    /**
     * Recovers a forgotten snapshot and all deleted data and index objects of the repository;
     * other snapshots, keys and locks are unchanged. Idempotent. False if the snapshot cannot be
     * recovered.
     */
    readonly undelete: (
      bucket: Bucket,
      engine_snapshot_id: string,
    ) => Effect.Effect<boolean, Failure>
  }
>()("actors/share-protection/Buckets") {}

/** The detail of TargetPreflightFailed for all adapters: the check's name comes first. */
export const preflightDetail = (check: PreflightCheck, why: string) => `${check}: ${why}`
