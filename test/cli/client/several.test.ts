/** Commands on several files or ids: all are tried, and each failure is reported. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { failure } from "#cli/client/failure.ts"
import { predictOne } from "#cli/client/plant-disease/prediction.ts"
import { runEach } from "#cli/requests.ts"
import { cleanUp, newFolder } from "../../world/server/server.ts"
import { endingOf, json, sessionWith, withServer } from "./scripted.ts"

afterAll(cleanUp)

describe("a command on several files", () => {
  it("tries all of them, and names the file of each error", async () => {
    const folder = newFolder()
    const files = ["a", "b", "c", "d"].map((name) => join(folder, name))
    for (const [i, file] of files.entries()) if (i !== 1) writeFileSync(file, `image ${i}`)
    const outcome = await withServer(
      (_, answer, nth) =>
        nth === 2
          ? json(answer, 500, { detail: "The model failed." })
          : json(answer, 200, { prediction: "Rust" }),
      async ({ url }) => {
        const { session, written } = sessionWith(url)
        const found: Array<unknown> = []
        const work = runEach(
          session,
          files,
          (file) => predictOne(session, file, undefined),
          (done) => found.push(...done),
        )
        return { ...(await endingOf(work)), err: written.err, found }
      },
    )
    const [a, b, c, d] = files
    assert.deepEqual(outcome.found, [
      { file: a, prediction: "Rust" },
      { file: d, prediction: "Rust" },
    ])
    assert.match(outcome.err, new RegExp(`^almanac: ${b} does not exist\\n`))
    assert.include(outcome.err, `\nalmanac: ${c}: 500: The model failed.`)
    assert.equal(outcome.ending, "usage", "the exit code of the first failure")
    assert.equal(outcome.message, "2 of 4 failed")
  })

  it("stops at a server that does not respond, and counts the rest", async () => {
    const { session, written } = sessionWith("http://unused")
    const tried: Array<string> = []
    const work = runEach(
      session,
      ["a", "b", "c"],
      async (one) => {
        tried.push(one)
        throw failure("unreachable", "No response")
      },
      () => assert.fail("nothing to show"),
    )
    assert.deepEqual(await endingOf(work), {
      ending: "unreachable",
      message: "1 of 3 failed, 2 not tried",
    })
    assert.deepEqual(tried, ["a"])
    assert.equal(written.err, "almanac: a: No response\n")
  })

  it("reports the error of a single file alone", async () => {
    const { session, written } = sessionWith("http://unused")
    const work = runEach(
      session,
      ["a"],
      async () => {
        throw failure("refused", "413: Too long.")
      },
      () => assert.fail("nothing to show"),
    )
    assert.deepEqual(await endingOf(work), { ending: "refused", message: "a: 413: Too long." })
    assert.equal(written.err, "")
  })
})
