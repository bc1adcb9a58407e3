import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { runProgram, startChild } from "#adapters/share-protection/radosgw-program.ts"
import { temporaryFolder } from "../../../world/programs/nats.ts"

const programs = Effect.map(temporaryFolder, (folder) => ({
  folder,
  environment: { PATH: process.env.PATH ?? "", GIVEN: "given" },
}))

const shell = (script: string) => ["sh", ["-c", script]] as const

describe.runIf(process.platform === "linux")("a program of radosgw's", () => {
  it.live("answers what it wrote, in its folder, with the environment that it is given", () =>
    Effect.gen(function* () {
      const given = yield* programs
      const result = yield* runProgram(given, ...shell('echo "$(pwd) $GIVEN $HOME"'))
      assert.equal(result, `${given.folder} given \n`)
    }),
  )

  it.live("that fails is named, with its last five lines", () =>
    Effect.gen(function* () {
      const lines = "for n in 1 2 3 4 5 6; do echo line $n >&2; done; exit 3"
      const { message } = yield* Effect.flip(runProgram(yield* programs, ...shell(lines)))
      assert.equal(message, "sh ended (code 3); line 2; line 3; line 4; line 5; line 6")
    }),
  )

  it.live("is looked up in its log when it says nothing itself", () =>
    Effect.gen(function* () {
      const given = yield* programs
      const log = `${given.folder}/own.log`
      const script = shell("echo 'no space left' > own.log; exit 1")
      const child = yield* startChild(given, ...script, log)
      const how = yield* child.ended
      assert.equal(child.failed(`ended (${how})`).message, "sh ended (code 1); no space left")
    }),
  )

  it.live("that is not there is a failure of the same kind", () =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(runProgram(yield* programs, "no-such-program", []))
      assert.match(failure.message, /^no-such-program ended \(code 127\); .*no-such-program/)
    }),
  )

  it.live("ends with its scope, even if it ignores signals", () =>
    Effect.gen(function* () {
      const stubborn = shell("trap '' TERM; sleep 61 & echo ready; while :; do sleep 60; done")
      const given = yield* programs
      const begun = Effect.gen(function* () {
        const child = yield* startChild(given, ...stubborn)
        // By then it has a child process that shares its pipes.
        yield* Effect.repeat(Effect.sync(child.stdout), {
          until: (line) => line.includes("ready"),
          schedule: Schedule.spaced(20),
        })
        return child
      })
      const child = yield* Effect.scoped(begun)
      assert.equal(yield* child.ended, "signal SIGKILL")
    }),
  )
})
