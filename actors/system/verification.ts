/**
 * Verifies that no commit was changed, removed, moved or added since it was written.
 *
 * It reads the log once and keeps a hash for each stream. It cannot detect a log that is truncated
 * after its last checkpoint: for that, keep the result of an earlier verification elsewhere.
 *
 * Source: DESIGN of the running system, 1.
 */
import { Effect, Option, Schema, Stream } from "effect"
import type { AnyDecider } from "#actors/decider.ts"
import { Checkpoint, checkpoint_stream, firstRoot, nextRoot } from "#actors/system/checkpoint.ts"
import { type FoldCheck, foldCheck } from "#actors/system/fold-check.ts"
import { generation_stream } from "#actors/system/generation.ts"
import { acknowledgedThrough } from "#actors/system/quarantine.ts"
import {
  empty_tree,
  hexOf,
  leafOf,
  makeTreeBuilder,
  openTree,
  rootOf,
  type Tree,
} from "#actors/system/tree.ts"
import {
  commands_remembered_max,
  type Entry,
  isReadable,
  Log,
  type LogUnavailable,
  type Recorded,
  type Unreadable,
} from "#events/log.ts"
import { CheckpointEvent } from "#events/system/checkpoint.ts"
import { GenerationEvent } from "#events/system/generation.ts"
import type { Fault } from "#schemas/system/audit.ts"

/** Maximum number of faults to report; the rest are only counted. */
const faults_reported_max = 100

export interface VerificationOptions {
  /** The kinds of aggregates whose snapshots are recomputed. */
  readonly deciders: ReadonlyArray<AnyDecider>
  readonly faults_max?: number
  /** Memory for states, in bytes of their JSON; other states are read from the log again. */
  readonly held_bytes_max?: number | undefined
  /** The last position to verify; by default the log's last. */
  readonly until?: number | undefined
  /** Called from time to time with the current and the last position. */
  readonly onProgress?: (position: number, head: number) => Effect.Effect<void>
}

export interface Verification {
  /** Position of the last verified commit. */
  readonly position: number
  readonly commits: number
  readonly streams: number
  readonly checkpoints: number
  /** Unreadable commits that an operator has acknowledged; they are not faults. */
  readonly acknowledged: number
  /** Commits after the last checkpoint. */
  readonly unsealed: number
  /** Commits whose snapshot was recomputed; other commits have older or unknown machines. */
  readonly folded: number
  /** Root of the hash chain over every commit, which is equal in all copies of the log. */
  readonly root: string
  /** Root (hex) of the Merkle tree over every commit, as in signed heads. */
  readonly tree_root: string
  readonly fault_count: number
  readonly faults: ReadonlyArray<Fault>
}

/** A checkpoint in the log. */
interface Sealed extends CheckpointEvent {
  readonly position: number
}

interface Link {
  readonly position: number
  readonly hash: string
}

const decode = Schema.decodeUnknownOption(CheckpointEvent)

type Report = (fault: Fault) => void
type Hash = (text: string) => string
type Hashes = Pick<Log["Service"], "hashOf" | "digest">

/** Checks that positions are consecutive: the log's stream never deletes a message. */
const placesCheck = (report: Report) => {
  let last = 0
  return ({ position, stream }: Entry) => {
    const next = last + 1
    if (position > next) {
      const missing = position === next + 1 ? `${next}` : `${next} to ${position - 1}`
      report({
        kind: "gap",
        position,
        stream,
        expected: `position ${next}`,
        found: `position ${position}: ${missing} missing`,
      })
    } else if (position < next) {
      report({
        kind: "order",
        position,
        stream,
        expected: `position ${next}`,
        found: `position ${position} again`,
      })
    }
    last = Math.max(last, position)
  }
}

/** Checks that each commit has the hash of the one before it in its stream. */
const chainCheck = (report: Report, hashOf: Hash) => {
  const links = new Map<string, Link>()
  // The last readable commit of each stream that ends with an unreadable entry, if it has one.
  const loaded = new Map<string, Link | undefined>()
  const skip = ({ position, stream, hash }: Unreadable) => {
    if (!loaded.has(stream)) loaded.set(stream, links.get(stream))
    links.set(stream, { position, hash })
  }
  const check = (recorded: Recorded) => {
    const { position, stream, commit, hash } = recorded
    const before = links.get(stream)
    const expected = before?.hash ?? hashOf(stream)
    if (commit.prev !== expected) {
      const what = before === undefined ? "no commit before" : `the commit at ${before.position}`
      report({
        kind: "chain",
        position,
        stream,
        expected: `prev ${expected}, ${what}`,
        found: `prev ${commit.prev}`,
      })
    }
    links.set(stream, { position, hash })
    const last = loaded.has(stream) ? loaded.get(stream) : before
    loaded.delete(stream)
    return last?.position
  }
  const lasts = () => {
    const all = new Map<string, Link>(links)
    for (const [stream, link] of loaded) {
      if (link === undefined) all.delete(stream)
      else all.set(stream, link)
    }
    return all
  }
  return { check, skip, links, lasts }
}

/**
 * Checks that each aggregate loads from its last commit. A generation of the log starts with copies
 * of last commits, which the verification does not read as entries.
 */
const lastsCheck = (
  report: Report,
  links: ReadonlyMap<string, Link>,
  { position: last_verified }: { readonly position: number },
) => {
  const left = new Set(links.keys())
  const kind = "copy"
  return {
    check: ({ position, stream, hash }: Recorded) => {
      left.delete(stream)
      const link = links.get(stream)
      if (position > last_verified || (link?.position === position && link.hash === hash)) return
      const expected = link === undefined ? "no such aggregate" : `${link.position} ${link.hash}`
      report({ kind, position, stream, expected, found: `${position} ${hash}` })
    },
    finish: () => {
      for (const stream of left) {
        const { position, hash } = links.get(stream) ?? { position: 0, hash: "" }
        report({ kind, position, stream, expected: `${position} ${hash}`, found: "nothing" })
      }
    },
  }
}

const commandsCheck = (report: Report) => {
  return ({ position, stream, commit: { commands } }: Recorded) => {
    const kind = "commands"
    const duplicate = commands.find((id, i) => commands.indexOf(id) !== i)
    if (duplicate !== undefined) {
      report({ kind, position, stream, expected: "each command once", found: `${duplicate} twice` })
    }
    if (commands.length === 0 || commands.length > commands_remembered_max) {
      const expected = `1 to ${commands_remembered_max} command ids`
      report({ kind, position, stream, expected, found: String(commands.length) })
    }
  }
}

/** Recomputes the roots. After a wrong root the next may follow from it or from the right one. */
const rootsCheck = (report: Report, log: Hashes, sealed: ReadonlyArray<Sealed>) => {
  const { hashOf } = log
  const trees = treesCheck(log)
  let roots = [firstRoot(hashOf)]
  let commits = 0
  let next = 0
  let end = 0
  const wrong = ({ position }: Sealed, expected: string, found: string) =>
    report({ kind: "checkpoint", position, stream: checkpoint_stream, expected, found })

  const close = (one: Sealed) => {
    if (one.from !== end + 1) wrong(one, `from ${end + 1}`, `from ${one.from}`)
    if (one.to >= one.position) {
      wrong(one, `an end before ${one.position}`, `to ${one.to}`)
    } else if (one.commits !== commits) {
      wrong(one, `${commits} commits from ${end + 1} to ${one.to}`, `${one.commits} commits`)
    }
    const tree = trees.differs(one)
    const range = `${one.from} to ${one.to}`
    if (!roots.includes(one.root)) {
      wrong(one, `root ${roots[0]} for ${range}`, `root ${one.root}`)
      roots = [...roots.slice(0, 1), one.root]
    } else {
      if (tree !== undefined) wrong(one, `tree ${tree.expected} for ${range}`, `tree ${tree.found}`)
      roots = [one.root]
    }
    end = one.to
    commits = 0
    next++
  }
  const closeBefore = (position: number) => {
    for (let one = sealed[next]; one && one.to < position; one = sealed[next]) close(one)
  }
  return {
    check: (recorded: Entry) => {
      closeBefore(recorded.position)
      for (const { base, root } of beginningsIn(recorded)) {
        if (base === recorded.position - 1 && roots.includes(root)) continue
        const { position, stream } = recorded
        const expected = `root ${roots[0]} up to ${position - 1}`
        report({
          kind: "checkpoint",
          position,
          stream,
          expected,
          found: `root ${root} up to ${base}`,
        })
      }
      roots = roots.map((root) => nextRoot(hashOf, root, recorded))
      trees.add(recorded)
      commits++
    },
    finish: () => {
      closeBefore(Number.POSITIVE_INFINITY)
      return { root: roots[0] ?? "", tree_root: trees.root(), unsealed: commits }
    },
  }
}

const decodeBeginning = Schema.decodeUnknownOption(GenerationEvent)

/** The generations that a commit starts. */
const beginningsIn = (entry: Entry) =>
  entry.stream === generation_stream && isReadable(entry)
    ? entry.commit.events.flatMap((event) => Option.toArray(decodeBeginning(event)))
    : []

/** Recomputes the trees. After a wrong tree the next may grow from it. */
const treesCheck = ({ digest }: Hashes) => {
  let growth = makeTreeBuilder(digest, empty_tree)
  const treeText = (tree: Tree) => `${tree.size} ${hexOf(rootOf(digest, tree))}`
  return {
    add: (entry: Entry) => growth.add(leafOf(digest, entry)),
    root: () => hexOf(rootOf(digest, growth.tree())),
    /** Compares a checkpoint's tree, which must end at the last added commit. */
    differs: ({ tree }: Sealed) => {
      if (tree === undefined) return undefined
      const [expected, found] = [treeText(growth.tree()), treeText(openTree(tree))]
      if (expected === found) return undefined
      growth = makeTreeBuilder(digest, openTree(tree))
      return { expected, found }
    },
  }
}

/** Verifies commits one by one, in log order, without I/O. */
const verifier = (
  log: Hashes,
  sealed: ReadonlyArray<Sealed>,
  fold: FoldCheck,
  { faults_max, through }: { readonly faults_max: number; readonly through: number },
) => {
  const faults: Array<Fault> = []
  let fault_count = 0
  const report: Report = (fault) => {
    fault_count++
    if (faults.length < faults_max) faults.push(fault)
  }
  const places = placesCheck(report)
  const chain = chainCheck(report, log.hashOf)
  const commands = commandsCheck(report)
  const roots = rootsCheck(report, log, sealed)
  let commits = 0
  let acknowledged = 0
  let position = 0

  return {
    /** Returns the position of the stream's previous commit, if its state must be read again. */
    check: (recorded: Recorded) => {
      commits++
      position = recorded.position
      places(recorded)
      const before = chain.check(recorded)
      commands(recorded)
      roots.check(recorded)
      return fold.lacks(recorded.stream) ? before : undefined
    },
    skip: (entry: Unreadable) => {
      commits++
      position = entry.position
      places(entry)
      chain.skip(entry)
      roots.check(entry)
      const { stream, unreadable: found } = entry
      if (position <= through) acknowledged++
      else report({ kind: "unreadable", position, stream, expected: "a commit", found })
    },
    fold: (recorded: Recorded) => {
      const fault = fold.check(recorded)
      if (fault !== undefined) report(fault)
    },
    lasts: () => lastsCheck(report, chain.lasts(), { position }),
    finish: (): Verification => {
      const end = roots.finish()
      const streams = chain.links.size
      const counts = { commits, streams, checkpoints: sealed.length, acknowledged, ...end }
      return { position, ...counts, folded: fold.folded(), fault_count, faults }
    },
  }
}

/** The checkpoints that match the schema; the fold check reports the others. */
const sealedIn = (log: Log["Service"]) =>
  log.read(checkpoint_stream).pipe(
    Stream.flatMap(({ position, commit }) =>
      Stream.fromIterable(
        commit.events.flatMap((event) =>
          Option.toArray(decode(event)).map((sealed) => ({ position, ...sealed })),
        ),
      ),
    ),
    Stream.runCollect,
  )

/** Verifies the log up to its current end. */
export const verify = Effect.fnUntraced(function* ({
  deciders,
  faults_max = faults_reported_max,
  held_bytes_max,
  until = Number.POSITIVE_INFINITY,
  onProgress = () => Effect.void,
}: VerificationOptions): Effect.fn.Return<Verification, LogUnavailable, Log> {
  const log = yield* Log
  const head = Math.min(yield* log.end, until)
  const fold = foldCheck([Checkpoint, ...deciders], held_bytes_max)
  const sealed = (yield* sealedIn(log)).filter(({ position }) => position <= head)
  const through = yield* acknowledgedThrough
  const checks = verifier(log, sealed, fold, { faults_max, through })

  /** Loads a state that is not in memory from the stream's previous commit. */
  const recall = (stream: string, position: number) =>
    Stream.runForEach(Stream.take(log.read(stream, position - 1), 1), (recorded) =>
      Effect.sync(() => fold.begin(recorded)),
    )
  const one = (recorded: Recorded) => {
    const before = checks.check(recorded)
    const known = before === undefined ? Effect.void : recall(recorded.stream, before)
    return Effect.andThen(
      known,
      Effect.sync(() => checks.fold(recorded)),
    )
  }
  const each = (entry: Entry) =>
    isReadable(entry) ? one(entry) : Effect.sync(() => checks.skip(entry))
  yield* log.entries("").pipe(
    Stream.takeWhile(({ position }) => position <= head),
    Stream.runForEachArray((stretch) =>
      Effect.andThen(
        Effect.forEach(stretch, each, { discard: true }),
        onProgress(stretch.at(-1)?.position ?? 0, head),
      ),
    ),
  )
  const lasts = checks.lasts()
  yield* Stream.runForEach(log.lasts(""), (recorded) => Effect.sync(() => lasts.check(recorded)))
  lasts.finish()
  return checks.finish()
})
