import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { findBounded, readBounded, writeForOwner, writePrivate } from "../private.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-private-"))
afterAll(() => rmSync(folder, { recursive: true }))
const freshFolder = () => mkdtempSync(join(folder, "files-"))

describe("a private file", () => {
  it.effect("is accessible to its owner only, also if an open one existed before", () =>
    Effect.gen(function* () {
      const path = join(freshFolder(), "inner", "file")
      yield* writePrivate(path, "one")
      chmodSync(path, 0o644)
      yield* writePrivate(path, "two")
      expect(readFileSync(path, "utf8")).toBe("two")
      expect(statSync(path).mode & 0o777).toBe(0o600)
      expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700)
    }),
  )
  it.live("is written completely even if its writer is interrupted", () =>
    Effect.gen(function* () {
      const parent = freshFolder()
      for (let i = 0; i < 20; i++) {
        const writing = yield* Effect.forkChild(writePrivate(join(parent, "file"), `${i}`))
        for (let step = 0; step < i; step++) yield* Effect.sleep(0)
        yield* Fiber.interrupt(writing)
        const names = readdirSync(parent)
        assert.isTrue(
          names.every((name) => name === "file"),
          names.join(),
        )
      }
    }),
  )
  it.effect.skipIf(process.getuid?.() !== 0)(
    "written by root belongs to the folder's owner, who reads it",
    () =>
      Effect.gen(function* () {
        const parent = freshFolder()
        chownSync(parent, 4711, 4712)
        yield* writeForOwner(join(parent, "file"), "one")
        const { uid, gid, mode } = statSync(join(parent, "file"))
        expect([uid, gid, mode & 0o777]).toEqual([4711, 4712, 0o600])
        yield* writePrivate(join(parent, "secret"), "one")
        expect(statSync(join(parent, "secret")).uid).toBe(0)
      }),
  )
  it.effect("leaves no trace if it cannot be written", () =>
    Effect.gen(function* () {
      const parent = freshFolder()
      mkdirSync(join(parent, "file"))
      const failure = yield* Effect.flip(writePrivate(join(parent, "file"), "secret"))
      assert.notInclude(failure.message, "secret")
      expect(readdirSync(parent)).toEqual(["file"])
    }),
  )
  it.effect("is read up to its limit", () =>
    Effect.gen(function* () {
      const path = join(freshFolder(), "file")
      writeFileSync(path, "äb")
      expect(yield* readBounded(path, 3)).toBe("äb")
      expect((yield* Effect.flip(readBounded(path, 2))).code).toBe("TOO_LARGE")
    }),
  )
  it.effect("may be missing, but not unreadable", () =>
    Effect.gen(function* () {
      const parent = freshFolder()
      expect(yield* findBounded(join(parent, "none"), 1)).toEqual(Option.none())
      expect((yield* Effect.flip(findBounded(parent, 1))).code).toBe("EISDIR")
    }),
  )
})
