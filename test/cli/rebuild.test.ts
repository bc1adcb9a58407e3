import { readdirSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { publishInstance } from "#adapters/data-folder/instance-file.ts"
import { temporaryFolder } from "../world/programs/nats.ts"
import { almanac } from "./comparing.ts"
import { failing } from "./printed.ts"

describe("an unknown read model", () => {
  const commands = ["rebuild nosuch", "rebuild --diff nosuch", "audit diff nosuch"]
  it.effect.each(commands)("%s ends with code 2 and changes nothing", (words) =>
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

/** An instance whose read model of blobs cannot be read; the others are at position 7. */
const instance = Effect.fnUntraced(function* (folder: string) {
  const server = createServer((request, response) => {
    const is_broken = request.url?.includes("/blob-storage/")
    response.statusCode = is_broken ? 409 : 200
    const name = request.url?.split("/").at(-2)
    const found = { name, position: 7, tables: 1, count: 0, rows: [] }
    response.end(JSON.stringify(is_broken ? { detail: "A file of it is damaged." } : found))
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () => Effect.sync(() => server.close()),
  )
  // A listening TCP server has such an address.
  const { port } = server.address() as AddressInfo
  yield* publishInstance(folder, {
    url: `http://127.0.0.1:${port}`,
    nats: { url: "", user: "", password: Redacted.make("") },
    control_token: Redacted.make("admin"),
    pid: process.pid,
    started_at: "2026-11-20T00:00:00Z",
  })
})

describe("several read models of which one fails", () => {
  const names = ["blob-storage", "share-protection"]
  it.live.each([
    ["rebuild", "share-protection: rebuilt to position 7"],
    ["audit diff", "share-protection: matches the log, 1 tables at position 7"],
  ] as const)("%s tries them all, names the failed one and ends with code 1", ([words, done]) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* instance(folder)
      const data = ["--set", `data.dir=${folder}`]
      const { value, out, err } = yield* almanac(...data, ...words.split(" "), ...names)
      assert.deepEqual(out, [done])
      assert.deepEqual(err, ["almanac: blob-storage: A file of it is damaged."])
      assert.deepEqual(failing(value), [1, "1 of 2 failed"])
      const alone = yield* almanac(...data, ...words.split(" "), "blob-storage")
      assert.deepEqual([failing(alone.value), alone.err], [[1, "A file of it is damaged."], []])
    }).pipe(Effect.scoped),
  )
})
