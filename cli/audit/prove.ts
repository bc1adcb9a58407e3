/** `almanac audit prove`, `head` and `key`: proofs for third parties that verify the log. */
import { Console, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { Notary, signedHead } from "#actors/system/notary.ts"
import { prove as proofOf } from "#actors/system/proof.ts"
import { notary } from "#adapters/system/notary.ts"
import { lastPosition, requireReached } from "#cli/audit/log-end.ts"
import { CannotRun } from "#cli/audit/outcome.ts"
import { settings } from "#cli/root.ts"
import { readBounded } from "#files"
import { PartName } from "#schemas/system/audit.ts"
import { witnessed } from "#server/session.ts"

/**
 * Maximum size of a signed head: about 200 bytes, and as many again for each witness's signature.
 */
const head_bytes_max = 64 * 1024

/** Tree size of a signed head, from its second line. */
const sizeOf = Effect.fnUntraced(function* (path: string) {
  const text = yield* readBounded(path, head_bytes_max).pipe(
    Effect.mapError(({ message }) => new CannotRun({ message })),
  )
  const size = Number(text.split("\n", 2)[1])
  if (Number.isSafeInteger(size) && size > 0) return size
  return yield* new CannotRun({ message: `${path} is not a signed head.` })
})

export const prove = Command.make(
  "prove",
  {
    aggregate: Flag.String("aggregate").pipe(
      Flag.withDescription("Aggregate, service.aggregate.id"),
      Flag.withSchema(
        PartName.check(
          Schema.isPattern(/^[^.]+\.[^.]+\.[^.]+$/, { expected: "service.aggregate.id" }),
        ),
      ),
    ),
    at: Flag.Int("at").pipe(
      Flag.withDescription("Last position of its commits"),
      Flag.withSchema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
      Flag.optional,
    ),
    kept: Flag.String("kept").pipe(
      Flag.withDescription("File with an earlier head, to prove that this log extends it"),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ aggregate, at, kept }) {
    const configured = yield* settings
    const size = Option.isNone(kept) ? undefined : yield* sizeOf(kept.value)
    const request = { stream: aggregate, at: Option.getOrUndefined(at), kept: size }
    const proved = Effect.gen(function* () {
      yield* requireReached(request.at, yield* lastPosition)
      return yield* proofOf(request)
    })
    const proof = yield* proved.pipe(
      Effect.catchTag("NoProof", ({ message }) => Effect.fail(new CannotRun({ message }))),
      Effect.provide(witnessed(configured)),
    )
    yield* Console.log(JSON.stringify(proof))
  }),
).pipe(
  Command.withDescription("Print a proof that the commits of an aggregate are in the log, as JSON"),
  Command.withExamples([
    {
      command: "almanac audit prove --aggregate blob-storage.cluster.almanac > proof.json",
      description: "Check it with docs/examples/verify-proof.py",
    },
  ]),
)

const newestHead = Effect.gen(function* () {
  const head = yield* signedHead
  return (
    head ??
    (yield* new CannotRun({
      message: "The log has no signed head yet: see audit.checkpoint_seconds.",
    }))
  )
})

export const head = Command.make(
  "head",
  {},
  Effect.fn(function* () {
    const text = yield* Effect.provide(newestHead, witnessed(yield* settings))
    yield* Console.log(text.trimEnd())
  }),
).pipe(
  Command.withDescription("Print the newest signed head of the log; keep it on another machine"),
  Command.withExamples([
    { command: "almanac audit head > head.txt", description: "Save it to a file" },
  ]),
)

export const key = Command.make(
  "key",
  {},
  Effect.fn(function* () {
    const { data, audit } = yield* settings
    const { key } = yield* Effect.provide(Notary, notary(data.dir, audit.key_file))
    yield* Console.log(key.verifier)
  }),
).pipe(
  Command.withDescription("Print the public key that verifies signed heads"),
  Command.withExamples([{ command: "almanac audit key", description: "The key for an auditor" }]),
)
