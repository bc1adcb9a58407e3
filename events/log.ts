/**
 * The log: the one place where facts are kept, and the only truth.
 *
 * It is a sequence of commits. A commit is what one command did to one aggregate: its events in
 * order and the aggregate's state after them, so that loading an aggregate is reading one commit.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { Trace } from "#events/trace.ts"
import type { Message } from "#schemas/message.ts"

/** Largest commit as bytes of JSON: half of the bus's message limit (nats.conf, max_payload). */
export const commit_bytes_max = 512 * 1024

/** Largest snapshot as bytes of JSON: it is written again with each commit. */
export const snapshot_bytes_max = 16 * 1024

/** How many command ids a commit remembers: a command is recognised that long after it was done. */
export const commands_remembered_max = 64

/** An aggregate's state as its machine of version `machine` wrote it. */
export interface Snapshot {
  readonly machine: number
  readonly value: unknown
  readonly context: unknown
}

/** Who asked, and through which chain of causes. All of it is in the audit log for ever. */
export interface Origin {
  /** Names the command: sent twice it is done once. */
  readonly command_id: string
  /** Of what was asked under this id, where its sender may ask something else by mistake. */
  readonly fingerprint?: string
  /** The principal or the process that asked. Never a secret. */
  readonly actor: string
  /** RFC 3339 in UTC. Time arrives with the command; no decision reads a clock. */
  readonly at: string
  readonly request_id?: string
  readonly correlation_id?: string
  /** `<position>` of the commit that made a process send this command. */
  readonly cause?: string
  /** The span that wrote it, where traces are collected: what follows goes on in its trace. */
  readonly trace?: Trace
}

/** One message of the log. The format is for ever: fields are only ever added. */
export interface Commit extends Omit<Origin, "command_id" | "fingerprint"> {
  readonly v: 1
  readonly events: ReadonlyArray<Message>
  readonly snapshot: Snapshot
  /** Ids of the last commands that changed this aggregate, this commit's own last. */
  readonly commands: ReadonlyArray<string>
  /** The fingerprint of each of them, or an empty text; not there where none has one. */
  readonly fingerprints?: ReadonlyArray<string>
  /** SHA-256 (hex) of the aggregate's previous commit as stored, or of the stream's name. */
  readonly prev: string
}

/** A commit at its place in the log. */
export interface Recorded {
  /** Place in the whole log, rising: the version of the aggregate after this commit. */
  readonly position: number
  /** `<service>.<aggregate>.<id>`. */
  readonly stream: string
  readonly commit: Commit
  /** SHA-256 (hex) of the commit as stored; the next commit's `prev`. Computed when asked for. */
  readonly hash: string
  /** The commit as stored, where it was read from a log. */
  readonly bytes?: Uint8Array
}

/**
 * A message of the log that no release of this program wrote. It keeps its position, its hash is
 * part of every chain and tree, and nothing else is made of it (decisions 0182 and 0189).
 */
export interface Unreadable {
  readonly position: number
  /** What follows the head of its subject: any text. */
  readonly stream: string
  readonly hash: string
  readonly bytes: Uint8Array
  /** Why it is no commit, in a few words. */
  readonly unreadable: string
}

/** What the log holds at a position. */
export type Entry = Recorded | Unreadable

export const isReadable = (entry: Entry): entry is Recorded => !("unreadable" in entry)

/**
 * Says why this release cannot read what is in a commit; undefined where it can, and where a newer
 * release may have written it.
 */
export type Judge = (stream: string, commit: Commit) => string | undefined

/** Without a judge, as in a test of one part, every whole envelope is a commit. */
export const CommitJudge = Context.Reference<Judge>("events/CommitJudge", {
  defaultValue: () => () => undefined,
})

/** How a stream ends. */
export interface Tip {
  /** Position and hash of its last entry: what the next append names. */
  readonly position: number
  readonly hash: string
  /** Its last commit that can be read; undefined where there is none. */
  readonly last: Recorded | undefined
}

/** One commit to write, if its stream is still at `expected` (0: never written). */
export interface Append {
  readonly stream: string
  readonly expected: number
  readonly commit: Commit
}

/** Where a commit went. */
export interface Appended {
  readonly position: number
  /** SHA-256 (hex) of the commit as stored. */
  readonly hash: string
}

/** Another writer was first. Read again, decide again. */
export class VersionConflict extends Schema.TaggedError<VersionConflict>()("VersionConflict", {
  detail: Schema.String,
}) {}

/** The log cannot be reached or refuses to write. Nothing was written. */
export class LogUnavailable extends Schema.TaggedError<LogUnavailable>()("LogUnavailable", {
  detail: Schema.String,
}) {}

/** No answer came: written or not. Read again, look for the command's id. */
export class OutcomeUnknown extends Schema.TaggedError<OutcomeUnknown>()("OutcomeUnknown", {
  detail: Schema.String,
}) {}

/**
 * A part of the log: `""` is all of it, `"blob-storage"` one service, `"blob-storage.cluster"` one
 * kind of aggregate, `"blob-storage.cluster.main"` one aggregate.
 */
export type Part = string

/**
 * The one log. What cannot be read (`Unreadable`) is left out of `load`, `read`, `follow`, `lasts`
 * and `head`, so that readers of facts need not know of it.
 */
export class Log extends Context.Service<
  Log,
  {
    /** The stream's last commit that can be read; undefined when there is none. */
    readonly load: (stream: string) => Effect.Effect<Recorded | undefined, LogUnavailable>
    /** How the stream ends, for who appends to it; undefined when it was never written. */
    readonly tip: (stream: string) => Effect.Effect<Tip | undefined, LogUnavailable>
    /**
     * Writes all commits (1 to 100, each to another stream) or none, durably, and answers where
     * they went, in order.
     */
    readonly append: (
      commits: ReadonlyArray<Append>,
    ) => Effect.Effect<ReadonlyArray<Appended>, VersionConflict | LogUnavailable | OutcomeUnknown>
    /** The commits after `position`, oldest first, up to the log's end at this moment. */
    readonly read: (part: Part, position?: number) => Stream.Stream<Recorded, LogUnavailable>
    /** The commits after `position`, oldest first, and then each new one. It never ends. */
    readonly follow: (part: Part, position: number) => Stream.Stream<Recorded, LogUnavailable>
    /** The last commit of each stream, oldest first: all there is to know at boot. */
    readonly lasts: (part: Part) => Stream.Stream<Recorded, LogUnavailable>
    /** Position of the last commit that can be read; 0 when there is none. */
    readonly head: (part: Part) => Effect.Effect<number, LogUnavailable>
    /** As `read`, with what cannot be read: for who proves, copies or lists all of the log. */
    readonly entries: (part: Part, position?: number) => Stream.Stream<Entry, LogUnavailable>
    /** As `follow`, with what cannot be read. */
    readonly followEntries: (part: Part, position: number) => Stream.Stream<Entry, LogUnavailable>
    /** Position of the last entry of the whole log; 0 when there is none. */
    readonly end: Effect.Effect<number, LogUnavailable>
    /** SHA-256 (hex) of a text. That of a stream's name is `prev` of its first commit. */
    readonly hashOf: (text: string) => string
    /** SHA-256 of bytes, for what proves more than one commit. */
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
