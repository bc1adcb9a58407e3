/**
 * The log: the only store of facts, and the source of truth.
 *
 * It is a sequence of commits. A commit is the effect of one command on one aggregate: its events
 * in order and the aggregate's state after them, so loading an aggregate means reading one commit.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { Trace } from "#events/trace.ts"
import type { Message } from "#schemas/message.ts"

/**
 * Maximum size of a commit in bytes of JSON: half of the bus's message limit (nats.conf,
 * max_payload).
 */
export const commit_bytes_max = 512 * 1024

/** Maximum size of a snapshot in bytes of JSON: each commit writes it again. */
export const snapshot_bytes_max = 16 * 1024

/**
 * Number of command ids that a commit remembers: repeated commands are recognised for that long.
 */
export const commands_remembered_max = 64

/** An aggregate's state, as written by version `machine` of its state machine. */
export interface Snapshot {
  readonly machine: number
  readonly value: unknown
  readonly context: unknown
}

/** The sender of a command, and its chain of causes. All of it stays in the audit log. */
export interface Origin {
  /** Identifies the command: sending it twice has the same effect as once. */
  readonly command_id: string
  /** Fingerprint of the request, if its sender might reuse the id for another one by mistake. */
  readonly fingerprint?: string
  /** The principal or the process that sent it. Never a secret. */
  readonly actor: string
  /** RFC 3339 in UTC. Time arrives with the command; no decision reads a clock. */
  readonly at: string
  readonly request_id?: string
  readonly correlation_id?: string
  /** `<position>` of the commit that caused a process to send this command. */
  readonly cause?: string
  /** The span that wrote it, if traces are collected: consequences continue its trace. */
  readonly trace?: Trace
}

/** One message of the log. The format is permanent: fields are only ever added. */
export interface Commit extends Omit<Origin, "command_id" | "fingerprint"> {
  readonly v: 1
  readonly events: ReadonlyArray<Message>
  readonly snapshot: Snapshot
  /** Ids of the last commands that changed this aggregate, ending with this commit's. */
  readonly commands: ReadonlyArray<string>
  /** Fingerprints of these commands, or empty strings; absent if none has one. */
  readonly fingerprints?: ReadonlyArray<string>
  /** SHA-256 (hex) of the aggregate's previous commit as stored, or of the stream's name. */
  readonly prev: string
}

/** A commit and its position in the log. */
export interface Recorded {
  /** Position in the whole log, increasing: the aggregate's version after this commit. */
  readonly position: number
  /** `<service>.<aggregate>.<id>`. */
  readonly stream: string
  readonly commit: Commit
  /** SHA-256 (hex) of the commit as stored; the next commit's `prev`. Computed on access. */
  readonly hash: string
  /** The commit as stored, if it was read from a log. */
  readonly bytes?: Uint8Array
}

/**
 * A message of the log that no release of this program wrote. It keeps its position and its hash is
 * part of every chain and tree, but nothing is derived from it (decisions 0182 and 0189).
 */
export interface Unreadable {
  readonly position: number
  /** The subject without its prefix: any string. */
  readonly stream: string
  readonly hash: string
  readonly bytes: Uint8Array
  /** Why it is not a commit, in a few words. */
  readonly unreadable: string
}

/** The content of the log at a position. */
export type Entry = Recorded | Unreadable

export const isReadable = (entry: Entry): entry is Recorded => !("unreadable" in entry)

/**
 * Returns why this release cannot read a commit; undefined if it can, or if a newer release may
 * have written it.
 */
export type Judge = (stream: string, commit: Commit) => string | undefined

/** Without a judge, as in a unit test, every complete envelope is a commit. */
export const CommitJudge = Context.Reference<Judge>("events/CommitJudge", {
  defaultValue: () => () => undefined,
})

/** The end of a stream. */
export interface Tip {
  /** Position and hash of its last entry, which the next append names. */
  readonly position: number
  readonly hash: string
  /** Its last readable commit; undefined if there is none. */
  readonly last: Recorded | undefined
}

/** One commit to write, if its stream is still at `expected` (0: empty). */
export interface Append {
  readonly stream: string
  readonly expected: number
  readonly commit: Commit
}

/** Result of an append. */
export interface Appended {
  readonly position: number
  /** SHA-256 (hex) of the commit as stored. */
  readonly hash: string
}

/** Another writer was first. Read the stream and decide again. */
export class VersionConflict extends Schema.TaggedError<VersionConflict>()("VersionConflict", {
  detail: Schema.String,
}) {}

/** The log is unreachable or rejects writes. Nothing was written. */
export class LogUnavailable extends Schema.TaggedError<LogUnavailable>()("LogUnavailable", {
  detail: Schema.String,
}) {}

/**
 * No reply: the commit may or may not be written. Read the stream and look for the command's id.
 */
export class OutcomeUnknown extends Schema.TaggedError<OutcomeUnknown>()("OutcomeUnknown", {
  detail: Schema.String,
}) {}

/**
 * A part of the log: `""` is all of it, `"blob-storage"` one service, `"blob-storage.cluster"` one
 * kind of aggregate, `"blob-storage.cluster.main"` one aggregate.
 */
export type Part = string

/**
 * The log. Unreadable entries are left out of `load`, `read`, `follow`, `lasts` and `head`, so that
 * readers of facts can ignore them.
 */
export class Log extends Context.Service<
  Log,
  {
    /** The stream's last readable commit; undefined if there is none. */
    readonly load: (stream: string) => Effect.Effect<Recorded | undefined, LogUnavailable>
    /** The end of the stream, for appending to it; undefined if it is empty. */
    readonly tip: (stream: string) => Effect.Effect<Tip | undefined, LogUnavailable>
    /**
     * Writes all commits (1 to 100, each to another stream) or none, durably, and returns their
     * positions in order.
     */
    readonly append: (
      commits: ReadonlyArray<Append>,
    ) => Effect.Effect<ReadonlyArray<Appended>, VersionConflict | LogUnavailable | OutcomeUnknown>
    /** The commits after `position`, oldest first, up to the current end of the log. */
    readonly read: (part: Part, position?: number) => Stream.Stream<Recorded, LogUnavailable>
    /** The commits after `position`, oldest first, then each new one. Never ends. */
    readonly follow: (part: Part, position: number) => Stream.Stream<Recorded, LogUnavailable>
    /** The last commit of each stream, oldest first: sufficient state at startup. */
    readonly lasts: (part: Part) => Stream.Stream<Recorded, LogUnavailable>
    /** Position of the last readable commit; 0 if there is none. */
    readonly head: (part: Part) => Effect.Effect<number, LogUnavailable>
    /**
     * Like `read`, including unreadable entries: for verifying, copying or listing the whole log.
     */
    readonly entries: (part: Part, position?: number) => Stream.Stream<Entry, LogUnavailable>
    /** Like `follow`, including unreadable entries. */
    readonly followEntries: (part: Part, position: number) => Stream.Stream<Entry, LogUnavailable>
    /** Position of the last entry of the whole log; 0 if it is empty. */
    readonly end: Effect.Effect<number, LogUnavailable>
    /** SHA-256 (hex) of a string. The hash of a stream's name is `prev` of its first commit. */
    readonly hashOf: (text: string) => string
    /** SHA-256 of bytes, for proofs over several commits. */
    readonly digest: (data: Uint8Array) => Uint8Array
  }
>()("events/Log") {}

/** `<service>.<aggregate>` and id of a stream. */
export const parseStream = (stream: string) => {
  const dot = stream.lastIndexOf(".")
  return { name: stream.slice(0, dot), id: stream.slice(dot + 1) }
}

/** Whether a stream belongs to a part of the log. */
export const isPartOf = (part: Part, stream: string) =>
  part === "" || stream === part || stream.startsWith(`${part}.`)
