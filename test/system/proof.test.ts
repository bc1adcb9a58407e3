import { execFile, execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Stream } from "effect"
import { Notary, signedHead } from "#actors/system/notary.ts"
import { prove } from "#actors/system/proof.ts"
import { Log } from "#events/log.ts"
import type { AuditProof } from "#schemas/system/audit.ts"
import { describeAbsent } from "../world/programs/absent.ts"
import { count, emptyLog, newKey, sealedStory, settled } from "../world/system/sealed.ts"

const checker = new URL("../../docs/examples/verify-proof.py", import.meta.url).pathname

/** Time limit for the checker's own checks, in milliseconds, on a busy machine. */
const check_ms_max = 60_000

const has_python = (() => {
  try {
    execFileSync("python3", ["-c", "import hashlib, json"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
})()

/** The checker's verdict on a proof. */
const verdict = (proof: unknown, key: string, kept?: string) =>
  Effect.promise(async () => {
    const folder = mkdtempSync(join(tmpdir(), "almanac-proof-"))
    const path = join(folder, "proof.json")
    const kept_path = join(folder, "head.txt")
    writeFileSync(path, JSON.stringify(proof))
    if (kept !== undefined) writeFileSync(kept_path, kept)
    const args = [checker, path, key, ...(kept === undefined ? [] : [kept_path])]
    const result = await new Promise<{ code: number; out: string; err: string }>((resolve) =>
      execFile("python3", args, { timeout: check_ms_max }, (error, out, err) =>
        resolve({ code: error === null ? 0 : Number(error.code), out, err }),
      ),
    )
    rmSync(folder, { recursive: true })
    return result
  })

const aggregate = "test.counter.a"
const sealed = { stream: aggregate, at: 30 }

/** A proof, the key's verifier, and a head from the middle of the story. */
const story = Effect.gen(function* () {
  yield* sealedStory
  const kept = (yield* signedHead) ?? ""
  for (let i = 41; i <= 60; i++) {
    yield* count("b", i)
    yield* settled
  }
  const size = Number(kept.split("\n")[1])
  const proof = yield* prove({ ...sealed, kept: size })
  const { key } = yield* Notary
  return { proof, verifier: key.verifier, kept }
}).pipe(Effect.scoped)

const first = <A>(all: ReadonlyArray<A>): A => {
  const [one] = all
  if (one === undefined) throw new Error("there is one")
  return one
}

/** The same hex with its first digit changed. */
const bent = (hex: string) => (hex.startsWith("0") ? "1" : "0") + hex.slice(1)

/** The proof with one commit replaced. */
const withCommit = (
  proof: AuditProof,
  index: number,
  change: (commit: AuditProof["commits"][number]) => AuditProof["commits"][number],
): AuditProof => ({
  ...proof,
  commits: proof.commits.map((one, i) => (i === index ? change(one) : one)),
})

const tamperings: Readonly<Record<string, (proof: AuditProof) => unknown>> = {
  "a changed event": (proof) =>
    withCommit(proof, 1, (one) => ({ ...one, commit: one.commit.replace('"by":', '"by":1') })),
  "a commit at another place": (proof) =>
    withCommit(proof, 1, (one) => ({ ...one, position: one.position + 1 })),
  "a commit that was left out": (proof) => ({
    ...proof,
    commits: proof.commits.filter((_, i) => i !== 1),
  }),
  "the last commit changed, which none follows": (proof) =>
    withCommit(proof, proof.commits.length - 1, (one) => ({
      ...one,
      commit: one.commit.replace('"actor":"test"', '"actor":"best"'),
    })),
  "another path": (proof) =>
    withCommit(proof, 0, (one) => ({
      ...one,
      path: [bent(first(one.path)), ...one.path.slice(1)],
    })),
  "another checkpoint": (proof) => ({
    ...proof,
    checkpoint: { ...proof.checkpoint, root: bent(proof.checkpoint.root) },
  }),
  "a checkpoint of another size": (proof) => ({
    ...proof,
    checkpoint: { ...proof.checkpoint, size: proof.checkpoint.size + 1 },
  }),
  "another way to the head": (proof) => ({
    ...proof,
    consistency: [bent(first(proof.consistency)), ...proof.consistency.slice(1)],
  }),
  "a head of another size": (proof) => ({
    ...proof,
    head: proof.head.replace(/\n(\d+)\n/, (_, size) => `\n${Number(size) + 1}\n`),
  }),
  "another aggregate's name": (proof) => ({ ...proof, aggregate: "test.counter.b" }),
  "no aggregate's name": (proof) => ({ ...proof, aggregate: [] }),
  "a checkpoint beyond the head": (proof) => ({
    ...proof,
    checkpoint: { ...proof.checkpoint, size: proof.checkpoint.size * 8 },
  }),
  "a subtree's root and its size in place of the checkpoint": (proof) => ({
    ...proof,
    checkpoint: { size: 2, root: first(first(proof.commits).path) },
    commits: proof.commits.slice(0, 1),
  }),
}

const whenChecked = () =>
  describe("a proof that a third party verifies", () => {
    it.effect("is valid, and shows the events", () =>
      Effect.gen(function* () {
        const { proof, verifier, kept } = yield* story
        const result = yield* verdict(proof, verifier, kept)
        assert.deepEqual([result.code, result.err], [0, ""])
        const lines = result.out.trimEnd().split("\n")
        assert.equal(lines.length, proof.commits.length + 1)
        // The aggregate and the last commit: a valid proof may be of something else.
        assert.equal(lines[0], `3 ${aggregate} 2026-11-20T03:00:00.000Z Counted`)
        const [name, size] = proof.head.split("\n")
        assert.equal(lines.at(-1), `in the first ${size} commits of ${name}`)
      }).pipe(Effect.provide(emptyLog)),
    )

    it.effect("is invalid after any change", () =>
      Effect.gen(function* () {
        const { proof, verifier } = yield* story
        const result = yield* Effect.forEach(
          Object.entries(tamperings),
          ([what, tamper]) =>
            Effect.map(verdict(tamper(proof), verifier), (one) => ({ what, ...one })),
          { concurrency: 2 },
        )
        for (const { what, code, out, err } of result) {
          assert.deepEqual([what, code, out], [what, 1, ""])
          assert.match(err, /^not proven: /, what)
        }
      }).pipe(Effect.provide(emptyLog)),
    )

    it.effect("is invalid with another key or with the head of another log", () =>
      Effect.gen(function* () {
        const { proof, verifier, kept } = yield* story
        const { key, sign } = newKey()
        assert.include((yield* verdict(proof, key.verifier)).err, "not signed with this key")
        const notary = yield* Notary
        const other = notary.sign({ size: 7, root: new Uint8Array(32) })
        assert.include((yield* verdict(proof, verifier, other)).err, "the kept head")
        const foreign = sign({ size: 7, root: new Uint8Array(32) })
        assert.equal((yield* verdict(proof, verifier, foreign)).code, 1)
        const forged = kept.replace(/\n(\S+)\n\n/, (_, root) => `\n${root.slice(1)}${root[0]}\n\n`)
        assert.equal((yield* verdict(proof, verifier, forged)).code, 1)
      }).pipe(Effect.provide(emptyLog)),
    )
  })

if (has_python) whenChecked()
else describeAbsent("a proof that a third party verifies", "python3", "Install Python 3.")

describe("a proof", () => {
  it.effect("covers all of the aggregate's commits up to a position", () =>
    Effect.gen(function* () {
      const { proof } = yield* story
      const log = yield* Log
      const all = yield* Stream.runCollect(log.read(aggregate))
      assert.deepEqual(
        proof.commits.map(({ position }) => position),
        all.map(({ position }) => position).filter((position) => position <= sealed.at),
      )
      assert.equal(JSON.parse(first(proof.commits).commit).prev, log.hashOf(aggregate))
      // At most as many steps as the tree is high, however many commits there are.
      for (const { path } of proof.commits) assert.isAtMost(path.length, 6)
    }).pipe(Effect.provide(emptyLog)),
  )

  it.effect("gives the reason if it is impossible", () =>
    Effect.gen(function* () {
      yield* count("a", 1)
      const why = (request: Parameters<typeof prove>[0]) =>
        Effect.map(Effect.result(prove(request)), (result) =>
          Result.isFailure(result) ? String(result.failure) : "",
        )
      assert.include(yield* why({ stream: aggregate }), "No commits are sealed")
      yield* sealedStory
      assert.include(yield* why({ stream: "test.counter.none" }), "had no commits")
      assert.include(yield* why({ stream: aggregate, kept: 1000 }), "The stored head has 1000")
      yield* count("a", 100)
      assert.include(yield* why({ stream: aggregate }), "not sealed yet")
    }).pipe(Effect.scoped, Effect.provide(emptyLog)),
  )
})
