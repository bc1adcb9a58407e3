import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Engine, EngineFailed } from "#actors/share-protection/ports/engine.ts"
import { RepositoryLocked, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import {
  backUp,
  host,
  id,
  repository,
  says,
  secrets,
  summary,
  withScript,
} from "../../../world/share-protection/restic/fake.ts"

const exitError = (code: number, message: string) => [
  `echo '${JSON.stringify({ message_type: "exit_error", code, message })}' >&2`,
  `exit ${code}`,
]
const snapshots = Effect.flatMap(Engine, (engine) => engine.snapshots(repository))

describe("what restic's codes mean", () => {
  for (const [code, kind, wrote_nothing] of [
    [1, EngineFailed, false],
    [10, EngineFailed, true],
    [11, RepositoryLocked, undefined],
    [12, TrustAccessDenied, undefined],
    [130, EngineFailed, false],
    [3, EngineFailed, false],
  ] as const) {
    it.live(`${code} is ${kind.name}${wrote_nothing ? ", and nothing was written" : ""}`, () =>
      withScript(exitError(code, "Fatal: no"), () =>
        Effect.gen(function* () {
          const failure = yield* Effect.flip(backUp())
          assert.equal(failure.constructor, kind)
          if (failure instanceof EngineFailed) assert.equal(failure.wrote_nothing, wrote_nothing)
        }),
      ),
    )
  }

  it.live("12 is another target's repository where a bucket is enrolled", () =>
    withScript(exitError(12, "Fatal: no"), () =>
      Effect.gen(function* () {
        const failure = yield* Effect.flip((yield* Engine).init(repository))
        assert.instanceOf(failure, TrustAccessDenied)
        assert.match(failure.detail, /it belongs to another target/)
      }),
    ),
  )

  it.live("3 is a snapshot without unreadable files, if there is one", () =>
    withScript([says(summary), "exit 3"], () =>
      Effect.gen(function* () {
        assert.deepEqual(yield* backUp(), {
          engine_snapshot_id: id,
          taken_at: "2026-01-02T03:04:05.678Z",
          partial: true,
          // restic does not report the path.
          unread: ["/"],
          bytes: 14,
          stored_bytes: 15,
          files: 3,
        })
      }),
    ),
  )

  it.live("0 without a summary is no backup", () =>
    withScript(["exit 0"], () =>
      Effect.gen(function* () {
        assert.instanceOf(yield* Effect.flip(backUp()), EngineFailed)
      }),
    ),
  )

  it.live("a signal is a failure that may have written", () =>
    withScript(["kill -9 $$"], () =>
      Effect.gen(function* () {
        const failure = yield* Effect.flip(backUp())
        assert(failure instanceof EngineFailed)
        assert.isFalse(failure.wrote_nothing)
        assert.include(failure.detail, "killed")
      }),
    ),
  )

  it.live("a refusal among the last words is one of the keys", () =>
    withScript(exitError(1, "Fatal: client.BucketExists: Access Denied."), () =>
      Effect.gen(function* () {
        assert.instanceOf(yield* Effect.flip(snapshots), TrustAccessDenied)
      }),
    ),
  )
})

describe("restic that asks again and again", () => {
  const retries = (op: string, why: string) => [
    // As restic does on SIGTERM.
    "trap 'exit 130' TERM",
    "for n in 1 2 3; do",
    `  echo '${op} returned error, retrying after 1s: ${why}' >&2`,
    "done",
    "while :; do sleep 0.05; done",
  ]

  for (const why of [
    "Stat: Access Denied.",
    "Stat: The access key ID you provided does not exist in our records.",
    "Stat: The request signature we calculated does not match the signature you provided.",
  ]) {
    it.live(`is stopped where the answer is "${why.slice(6, 30)}"`, () =>
      withScript(retries("Stat(<config/>)", why), () =>
        Effect.gen(function* () {
          assert.instanceOf(yield* Effect.flip(snapshots), TrustAccessDenied)
        }),
      ),
    )
  }

  it.live("is stopped if the bucket is missing", () =>
    withScript(retries("Stat(<config/>)", "Stat: The specified bucket does not exist."), () =>
      Effect.gen(function* () {
        const failure = yield* Effect.flip(snapshots)
        assert(failure instanceof EngineFailed)
        assert.include(failure.detail, "bucket")
        assert.isTrue(failure.wrote_nothing)
      }),
    ),
  )

  for (const [op, wrote_nothing] of [
    ["Stat(<config/>)", true],
    ["Save(<data/0123456789>)", false],
  ] as const) {
    it.live(`is stopped after an outage at ${op}`, () =>
      withScript(
        retries(op, "dial tcp 127.0.0.1:9: connect: connection refused"),
        () =>
          Effect.gen(function* () {
            const failure = yield* Effect.flip(backUp())
            assert(failure instanceof EngineFailed)
            assert.include(failure.detail, "did not respond for 0.2 s")
            assert.equal(failure.wrote_nothing, wrote_nothing)
          }),
        { outage_s: 0.2 },
      ),
    )
  }

  it.live("goes on where an answer came in time", () =>
    withScript(
      [
        "for n in 1 2; do",
        "  echo 'Save(x) returned error, retrying after 1s: Access Denied.' >&2",
        "done",
        "echo 'Save(x) operation successful after 2 retries' >&2",
        "for n in 1 2; do",
        "  echo 'Save(y) returned error, retrying after 1s: Access Denied.' >&2",
        "done",
        "echo 'Save(y) operation successful after 2 retries' >&2",
        // Longer than the tolerated outage.
        "sleep 0.6",
        says(summary),
      ],
      () =>
        Effect.gen(function* () {
          assert.equal((yield* backUp()).engine_snapshot_id, id)
        }),
      { outage_s: 0.3 },
    ),
  )
})

describe("the message of a failure", () => {
  it.live("has no secret in it, one line, and an end", () =>
    withScript(
      exitError(
        1,
        `Fatal: with ${Object.values(secrets).join(" and ")}\\nand ${"x".repeat(9_000)}`,
      ),
      () =>
        Effect.gen(function* () {
          const failure = yield* Effect.flip(snapshots)
          for (const secret of Object.values(secrets)) {
            assert.notInclude(JSON.stringify(failure), secret)
            assert.notInclude(String(failure.stack), secret)
          }
          assert.include(failure.detail, "<redacted>")
          assert.notInclude(failure.detail, "\n")
          assert.isAtMost(failure.detail.length, 500)
        }),
    ),
  )

  it.live("is known from last words that are no JSON", () =>
    withScript(["echo 'Fatal: Stat: Access Denied.' >&2", "echo s3:http://x >&2", "exit 1"], () =>
      Effect.gen(function* () {
        assert.instanceOf(yield* Effect.flip(snapshots), TrustAccessDenied)
      }),
    ),
  )

  it.live("names what restic met on its way", () =>
    withScript(
      [
        `echo '{"message_type":"error","error":{"message":"disk quota exceeded"}}' >&2`,
        ...exitError(1, "Fatal: There were 1 errors"),
      ],
      () =>
        Effect.gen(function* () {
          assert.include((yield* Effect.flip(snapshots)).detail, "disk quota exceeded")
        }),
    ),
  )
})

describe("what restic says", () => {
  it.live("is passed over where it is too long, or of no known form", () =>
    withScript(
      [
        'head -c 3000000 /dev/zero | tr "\\0" x; echo',
        'echo \'{"message_type":"summary"\'',
        says({ message_type: "new", anything: 1 }),
        says({ ...summary, snapshot_id: "short" }),
        says({ ...summary, total_files_processed: -1 }),
        says(summary),
        "head -c 3000000 /dev/zero >&2",
      ],
      () =>
        Effect.gen(function* () {
          assert.equal((yield* backUp()).files, 3)
        }),
    ),
  )

  it.live("is how far it is, in per cent", () =>
    withScript(
      [
        says({ message_type: "status", percent_done: 0.25, total_bytes: 8, bytes_done: 2 }),
        "sleep 0.3",
        says({ message_type: "status", percent_done: 1.5, total_bytes: 8, bytes_done: 8 }),
        "sleep 0.3",
        says(summary),
      ],
      () =>
        Effect.gen(function* () {
          const seen: Array<number> = []
          yield* backUp({}, ({ percent, bytes_done, bytes_total }) =>
            Effect.sync(() => {
              seen.push(percent, bytes_done, bytes_total)
            }),
          )
          assert.deepEqual(seen, [25, 2, 8, 100, 8, 8])
        }),
    ),
  )

  const snapshot = { id, time: "2026-01-02T04:04:05.678901+01:00", hostname: host, tags: ["a=b"] }

  it.live("is its snapshots, though one has a megabyte of paths in it", () => {
    const paths = Array.from({ length: 100 }, (_, n) => `{[,"\\${n}`)
    const long = JSON.stringify([
      { ...snapshot, paths },
      { ...snapshot, id: "b".repeat(64) },
    ])
    return withScript([`cat <<'END'\n${long}\nEND`], () =>
      Effect.gen(function* () {
        const [one, other, ...more] = yield* snapshots
        assert.deepEqual(one, {
          engine_snapshot_id: id,
          taken_at: "2026-01-02T03:04:05.678Z",
          host,
          tags: ["a=b"],
          bytes: 0,
          stored_bytes: 0,
          files: 0,
        })
        assert.equal(other?.engine_snapshot_id, "b".repeat(64))
        assert.deepEqual(more, [])
      }),
    )
  })

  it.live("is no list of snapshots where one of them cannot be read", () =>
    withScript([says([snapshot, { ...snapshot, id: "short" }])], () =>
      Effect.gen(function* () {
        assert.instanceOf(yield* Effect.flip(snapshots), EngineFailed)
      }),
    ),
  )
})
