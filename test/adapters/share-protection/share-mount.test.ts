import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { localMounts, nfsMounts } from "#adapters/share-protection/share-mount.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-mount-"))
afterAll(() => rmSync(folder, { recursive: true }))

/** Mount programs that record their effect in a table, as the kernel does. */
const machine = () => {
  const home = mkdtempSync(join(folder, "machine-"))
  const table = join(home, "table")
  const calls_path = join(home, "said")
  writeFileSync(table, "proc /proc proc rw 0 0\n")
  writeFileSync(calls_path, "")
  const program = (name: string, lines: ReadonlyArray<string>) => {
    const path = join(home, name)
    const start = ["#!/bin/sh", "set -e", `echo "${name} $*" >> ${calls_path}`]
    writeFileSync(path, [...start, ...lines, ""].join("\n"))
    chmodSync(path, 0o755)
    return path
  }
  // The arguments of mount are -t nfs -o OPTIONS -- EXPORT PATH; the arguments of umount are --
  // PATH.
  const mount = program("mount", [
    `test ! -e ${home}/broken`,
    `echo "$6 $(echo "$7" | sed 's/ /\\\\040/g') nfs ro 0 0" >> ${table}`,
  ])
  const umount = program("umount", [
    `grep -v -F "$2 " ${table} > ${table}.new`,
    `mv ${table}.new ${table}`,
  ])
  const mounts = join(home, "mounts")
  return {
    options: { folder: mounts, mount, umount, table },
    mounts,
    breakIt: () => writeFileSync(join(home, "broken"), ""),
    calls: () => readFileSync(calls_path, "utf8").trim().split("\n").filter(Boolean),
  }
}

describe("an export on this machine", () => {
  it.effect("is the folder itself, and nothing else is one", () =>
    Effect.gen(function* () {
      const attach = (path: string) => localMounts.attach(path, "job", "ro")
      expect(yield* attach(`127.0.0.1:${folder}`)).toBe(folder)
      const others = ["/tmp", `10.0.0.1:${folder}`, `127.0.0.1:${folder}/none`, "127.0.0.1:tmp"]
      for (const other of [...others, `127.0.0.1:${import.meta.filename}`]) {
        const error = yield* Effect.flip(attach(other))
        expect(error.code).toBe("svc.network_strategy_precondition")
      }
    }),
  )
})

describe("an export over NFS", () => {
  it.effect("is mounted once for a job, without a tenant's devices and programs", () =>
    Effect.gen(function* () {
      const { options, mounts, calls } = machine()
      const { attach, detach } = yield* nfsMounts(options)
      const path = yield* attach("10.0.0.5:/shares/a", "job-1", "ro")
      expect(path).toBe(join(mounts, "job-1"))
      expect(yield* attach("10.0.0.5:/shares/a", "job-1", "ro")).toBe(path)
      yield* attach("[fd00::1]:/shares/b", "job-2", "rw")
      const always = "nosuid,nodev,noexec"
      expect(calls()).toEqual([
        `mount -t nfs -o ro,${always} -- 10.0.0.5:/shares/a ${path}`,
        `mount -t nfs -o rw,${always} -- [fd00::1]:/shares/b ${join(mounts, "job-2")}`,
      ])
      yield* detach("job-1")
      yield* detach("job-1")
      expect(calls().slice(2)).toEqual([`umount -- ${path}`])
      expect(existsSync(path)).toBe(false)
    }),
  )

  it.effect("is unmounted at the end; an earlier process's mount is removed at the start", () =>
    Effect.gen(function* () {
      const { options, mounts, calls } = machine()
      const scope = yield* Scope.make()
      const { attach } = yield* Scope.provide(nfsMounts(options), scope)
      yield* attach("10.0.0.5:/a", "job-1", "ro")
      yield* Scope.close(scope, Exit.void)
      expect(calls().at(-1)).toBe(`umount -- ${join(mounts, "job-1")}`)
      mkdirSync(join(mounts, "job-0"))
      writeFileSync(options.table, `10.0.0.5:/a ${join(mounts, "job-0")} nfs ro 0 0\n`)
      yield* nfsMounts(options)
      expect(calls().at(-1)).toBe(`umount -- ${join(mounts, "job-0")}`)
    }),
  )

  it.effect("that cannot be mounted is retried, and its name cannot contain options", () =>
    Effect.gen(function* () {
      const { options, breakIt, calls } = machine()
      const { attach, detach } = yield* nfsMounts(options)
      for (const path of ["-oexec:/a", "10.0.0.5", "/etc", "10.0.0.5:a", ""]) {
        const error = yield* Effect.flip(attach(path, "job", "ro"))
        expect(error.code).toBe("svc.network_strategy_precondition")
      }
      expect(calls()).toEqual([])
      breakIt()
      const error = yield* Effect.flip(attach("10.0.0.5:/a", "job", "ro"))
      expect([error.code, error.detail]).toEqual([
        "svc.backend_unavailable",
        "Cannot mount or unmount for a share: 1.",
      ])
      yield* detach("job")
      const none = yield* nfsMounts({ ...options, mount: join(folder, "none") })
      expect((yield* Effect.flip(none.attach("10.0.0.5:/a", "job", "ro"))).detail).toContain(
        "ENOENT",
      )
    }),
  )

  it.effect("never takes a tenant's files with it", () =>
    Effect.gen(function* () {
      const { options, mounts } = machine()
      const { detach } = yield* nfsMounts(options)
      mkdirSync(join(mounts, "job-1"), { recursive: true })
      writeFileSync(join(mounts, "job-1", "file"), "kept")
      yield* Effect.flip(detach("job-1"))
      expect(readFileSync(join(mounts, "job-1", "file"), "utf8")).toBe("kept")
    }),
  )
})
