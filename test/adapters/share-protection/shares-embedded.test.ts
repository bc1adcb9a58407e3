import { execFileSync } from "node:child_process"
import { hash } from "node:crypto"
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schedule, Stream } from "effect"
import { v7 } from "uuid"
import { Shares } from "#actors/share-protection/ports/shares.ts"
import { copyFolder, folderBytes, removeFolder } from "#adapters/share-protection/folder-copy.ts"
import { sharesEmbedded } from "#adapters/share-protection/shares/embedded.ts"
import { JobId, ProjectId, ShareId } from "#schemas/share-protection/id.ts"
import { type SharePlace, sharesContract } from "../../contract/share-protection/shares.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-shares-"))
afterAll(() => Effect.runPromise(removeFolder(folder)))
const freshFolder = () => mkdtempSync(join(folder, "root-"))

const portOf = (root: string, without: ReadonlySet<string> = new Set()) =>
  Effect.provide(Shares, sharesEmbedded({ root, snapshots: (id) => !without.has(id) }))

/** Embedded shares do not check whether a tenant allows access to a share. */
const nobody = Effect.die("no trust is needed")

const place = Effect.gen(function* () {
  const root = freshFolder()
  const without = new Set<string>()
  const shares = yield* portOf(root, without)
  const projects = { one: ProjectId.make(v7()), other: ProjectId.make("b".repeat(32)) }
  const answer: SharePlace = {
    shares,
    projects,
    by: nobody,
    make: Effect.fnUntraced(function* (files, { project = "one", snapshots = true } = {}) {
      const id = ShareId.make(v7())
      if (!snapshots) without.add(id)
      const path = join(root, projects[project], id)
      mkdirSync(path, { recursive: true })
      for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text)
      const share = yield* shares.find(projects[project], id)
      return share ?? assert.fail("a new folder is a new share")
    }),
    unexport: ({ project_id, id }) =>
      Effect.sync(() => renameSync(join(root, project_id, id), join(root, project_id, "away"))),
  }
  return answer
})

describe("embedded shares", () => {
  sharesContract((name, body) => it.effect(name, () => Effect.flatMap(place, body)))
})

const project_id = ProjectId.make("p1")
const job = (crash_consistent: boolean | null = null) => ({
  job_id: JobId.make(v7()),
  crash_consistent,
})

/** A root with one share, whose folder is `live`. */
const one = Effect.gen(function* () {
  const root = freshFolder()
  const id = ShareId.make(v7())
  const live = join(root, project_id, id)
  mkdirSync(live, { recursive: true })
  const shares = yield* portOf(root)
  const share = yield* shares.find(project_id, id)
  return { root, live, shares, share: share ?? assert.fail("no share") }
})

describe("the folders below the root", () => {
  it.effect("are shares if both names are ids and neither is a link or a file", () =>
    Effect.gen(function* () {
      const { root, live, shares, share } = yield* one
      yield* shares.prepare(share, job())
      const outside = join(freshFolder(), "outside")
      mkdirSync(join(outside, v7()), { recursive: true })
      const linked = v7()
      symlinkSync(outside, join(root, "p2"))
      symlinkSync(outside, join(root, project_id, linked))
      writeFileSync(join(root, project_id, v7()), "a file")
      mkdirSync(join(root, project_id, "no-uuid"))
      mkdirSync(join(root, project_id, v7().toUpperCase()))
      mkdirSync(join(root, "a project", v7()), { recursive: true })
      writeFileSync(join(root, "p3"), "a file")
      const all = yield* Stream.runCollect(shares.list)
      expect(all.map(({ id }) => id)).toEqual([share.id])
      expect(yield* shares.find(project_id, ShareId.make(linked))).toBeUndefined()
      const [inside = ""] = readdirSync(outside)
      expect(yield* shares.find(ProjectId.make("p2"), ShareId.make(inside))).toBeUndefined()
      yield* Effect.flip(shares.pathOf({ ...share, id: ShareId.make(linked) }))
      expect(yield* shares.pathOf(share)).toBe(live)
    }),
  )

  it.effect("are none where there is no root yet, and the first share makes it", () =>
    Effect.gen(function* () {
      const root = join(freshFolder(), "later")
      const shares = yield* portOf(root)
      expect(yield* Stream.runCollect(shares.list)).toEqual([])
      const like = (yield* one).share
      const order = { job_id: job().job_id, like, name: "n", by: nobody }
      const { share, path } = yield* shares.create(project_id, order)
      expect(lstatSync(path).mode & 0o777).toBe(0o700)
      expect(yield* Stream.runCollect(shares.list)).toEqual([])
      yield* shares.finish(share, order)
      expect((yield* Stream.runCollect(shares.list)).length).toBe(1)
    }),
  )

  it.effect("that cannot be listed are a failure, not an empty answer", () =>
    Effect.gen(function* () {
      const root = join(freshFolder(), "file")
      writeFileSync(root, "")
      const error = yield* Effect.flip(Stream.runCollect((yield* portOf(root)).list))
      expect(error.detail).toBe("Shares: cannot list projects: ENOTDIR.")
    }),
  )

  it.effect("count the bytes of their files, of no file behind a link", () =>
    Effect.gen(function* () {
      const { live, shares, share } = yield* one
      mkdirSync(join(live, "deep/deeper"), { recursive: true })
      writeFileSync(join(live, "a"), "12345")
      writeFileSync(join(live, "deep/deeper/b"), "123")
      symlinkSync("/etc", join(live, "etc"))
      symlinkSync(join(live, "a"), join(live, "again"))
      symlinkSync("..", join(live, "deep/up"))
      expect((yield* shares.find(project_id, share.id))?.size_bytes).toBe(8)
      expect(yield* folderBytes("/none/at/all")).toBe(0)
    }),
  )
})

describe("a snapshot", () => {
  it.effect("is the folder as it was: bytes, links, modes, times", () =>
    Effect.gen(function* () {
      const { live, shares, share } = yield* one
      mkdirSync(join(live, "sub/empty"), { recursive: true })
      writeFileSync(join(live, "sub/run"), "#!/bin/sh\n")
      chmodSync(join(live, "sub/run"), 0o4755)
      writeFileSync(join(live, "zero"), "")
      writeFileSync(join(live, "schön\n\u{1F4C4}"), Buffer.alloc(3_000_000, 7))
      linkSync(join(live, "zero"), join(live, "same"))
      symlinkSync("/etc/passwd", join(live, "out"))
      symlinkSync("nowhere", join(live, "dangling"))
      for (const name of ["sub/run", "sub/empty", "sub"]) {
        utimesSync(join(live, name), 1_000_000_000, 1_100_000_000)
      }
      chmodSync(join(live, "sub"), 0o555)
      const { path } = yield* shares.prepare(share, job())
      const walk = (root: string) =>
        readdirSync(root, { recursive: true, encoding: "utf8" })
          .toSorted()
          .map((name) => {
            const stats = lstatSync(join(root, name))
            const what = stats.isSymbolicLink()
              ? readlinkSync(join(root, name))
              : stats.isFile() && hash("sha256", readFileSync(join(root, name)))
            return [name, stats.mode, stats.mtimeMs.toFixed(2), what]
          })
      expect(walk(path)).toEqual(walk(live))
      expect(walk(path).length).toBe(8)
      yield* shares.release({ token: path.split("/").at(-1) ?? "" })
      assert.isFalse(existsSync(path))
    }),
  )

  it.effect("leaves out what is no file, folder or link", () =>
    Effect.gen(function* () {
      const { live, shares, share } = yield* one
      execFileSync("mkfifo", [join(live, "pipe")])
      writeFileSync(join(live, "file"), "x")
      const { path } = yield* shares.prepare(share, job())
      expect(readdirSync(path)).toEqual(["file"])
    }),
  )

  it.effect("is stored outside the shares, in a private folder", () =>
    Effect.gen(function* () {
      const { root, shares, share } = yield* one
      const wish = job()
      const { path } = yield* shares.prepare(share, wish)
      expect(path).toBe(join(root, ".snapshots", wish.job_id))
      expect(lstatSync(join(root, ".snapshots")).mode & 0o777).toBe(0o700)
      expect((yield* Stream.runCollect(shares.list)).length).toBe(1)
    }),
  )

  it.effect("that was cut off half way does not count", () =>
    Effect.gen(function* () {
      const { root, live, shares, share } = yield* one
      writeFileSync(join(live, "a"), "whole")
      const wish = job()
      const part = join(root, ".snapshots", `${wish.job_id}.part`)
      mkdirSync(join(part, "old"), { recursive: true })
      chmodSync(part, 0o555)
      const { path } = yield* shares.prepare(share, wish)
      expect(readdirSync(path)).toEqual(["a"])
      assert.isFalse(existsSync(part))
      mkdirSync(part)
      yield* shares.release({ token: wish.job_id })
      expect(readdirSync(join(root, ".snapshots"))).toEqual([])
    }),
  )

  it.live("stops where it is when it is interrupted, and leaves nothing", () =>
    Effect.gen(function* () {
      const { root, live, shares, share } = yield* one
      // A sparse file: it takes no space here but a long time to copy.
      writeFileSync(join(live, "large"), "")
      truncateSync(join(live, "large"), 2 ** 36)
      const wish = job()
      const part = join(root, ".snapshots", `${wish.job_id}.part`)
      const copying = yield* Effect.forkChild(shares.prepare(share, wish))
      yield* Effect.sync(() => existsSync(join(part, "large"))).pipe(
        Effect.repeat({ until: (is_there) => is_there, schedule: Schedule.spaced(1), times: 5000 }),
      )
      const since = performance.now()
      yield* Fiber.interrupt(copying)
      // A file system with copy-on-write clones may finish the copy first.
      if (Exit.isSuccess(yield* Fiber.await(copying))) yield* shares.release({ token: wish.job_id })
      assert.isBelow(performance.now() - since, 5000)
      expect(readdirSync(join(root, ".snapshots"))).toEqual([])
    }),
  )

  it.effect("of an unreadable share fails, and names no file", () =>
    Effect.gen(function* () {
      const { root, shares, share } = yield* one
      writeFileSync(join(root, ".snapshots"), "in the way")
      const error = yield* Effect.flip(shares.prepare(share, job()))
      expect([error.code, error.detail]).toEqual([
        "svc.backend_unavailable",
        "Shares: cannot remove the copy: ENOTDIR.",
      ])
    }),
  )

  it.effect("is released by an id only, not by a path", () =>
    Effect.gen(function* () {
      const { live, shares } = yield* one
      writeFileSync(join(live, "a"), "kept")
      for (const token of ["..", "../p1", ".", "", `../${project_id}`]) {
        yield* shares.release({ token })
      }
      expect(readFileSync(join(live, "a"), "utf8")).toBe("kept")
    }),
  )
})

describe("a copy of a folder", () => {
  it.live("does not mind what goes while it is made", () =>
    Effect.gen(function* () {
      const from = freshFolder()
      const names = Array.from({ length: 400 }, (_, n) => join(from, `d${n % 20}`, `f${n}`))
      for (const name of names) {
        mkdirSync(join(name, ".."), { recursive: true })
        writeFileSync(name, "x".repeat(1000))
      }
      const churn = Effect.sync(() => {
        const name = names.pop()
        if (name !== undefined) rmSync(name)
      }).pipe(Effect.andThen(Effect.sleep(0)), Effect.repeat({ times: 300 }))
      yield* Effect.all([copyFolder(from, `${from}-copy`), churn], { concurrency: 2 })
      for (const name of names) assert.isTrue(existsSync(name.replace(from, `${from}-copy`)))
    }),
  )

  it.live("has closed every file when its interruption ends", () =>
    Effect.gen(function* () {
      const from = freshFolder()
      writeFileSync(join(from, "large"), "")
      truncateSync(join(from, "large"), 2 ** 36)
      const to = `${from}-copy`
      const copying = yield* Effect.forkChild(copyFolder(from, to))
      yield* Effect.sync(() => existsSync(join(to, "large"))).pipe(
        Effect.repeat({ until: (is_there) => is_there, schedule: Schedule.spaced(1), times: 5000 }),
      )
      yield* Fiber.interrupt(copying)
      // Without /proc the list is empty, and the test proves nothing.
      const open = existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd") : []
      const files = open.map((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`)
        } catch {
          return ""
        }
      })
      expect(files.filter((path) => path.startsWith(from))).toEqual([])
    }),
  )

  it.effect("is not made over another", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(copyFolder(freshFolder(), freshFolder()))
      expect(message).toBe("cannot copy the folder: EEXIST")
    }),
  )
})
