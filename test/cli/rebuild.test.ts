import { readdirSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../world/programs/nats.ts"
import { almanac } from "./comparing.ts"
import { failing } from "./printed.ts"

describe("a read model that there is not", () => {
  const ways = ["rebuild nosuch", "rebuild --diff nosuch", "audit diff nosuch"]
  it.effect.each(ways)("%s ends with code 2, and touches nothing", (words) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { value } = yield* almanac("--set", `data.dir=${folder}`, ...words.split(" "))
      const [code, message] = failing(value) ?? []
      assert.equal(code, 2)
      assert.match(`${message}`, /^unknown read model nosuch: use any of blob-storage, /)
      assert.isEmpty(readdirSync(folder))
    }).pipe(Effect.scoped),
  )

  it.effect.each(["rebuild", "audit diff"])("%s --help lists the exit codes", (words) =>
    Effect.gen(function* () {
      const { out } = yield* almanac(...words.split(" "), "--help")
      assert.match(
        out.join(" ").replaceAll(/\s+/g, " "),
        /1 if a row differs, 2 for an unknown name/,
      )
    }),
  )
})
