import { spawn } from "node:child_process"
import { once } from "node:events"
import {
  existsSync,
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
import { Effect, Exit, Option, Redacted, Scope } from "effect"
import { nodeId } from "#adapters/blob-storage/node.ts"
import {
  findInstance,
  type Instance,
  publishInstance,
} from "#adapters/data-folder/instance-file.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-instance-"))
afterAll(() => rmSync(folder, { recursive: true }))
const freshFolder = () => mkdtempSync(join(folder, "data-"))

const instance: Instance = {
  url: "http://127.0.0.1:9797",
  nats: { url: "nats://127.0.0.1:4222", user: "verb", password: Redacted.make("hunter2") },
  control_token: Redacted.make("control"),
  pid: process.pid,
  started_at: "2026-11-20T00:00:00Z",
}
const fileIn = (data_dir: string) => join(data_dir, "run", "instance.json")

describe("the instance file", () => {
  it.effect("points a command to the running instance", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      yield* publishInstance(data_dir, instance)
      const found = Option.getOrThrow(yield* findInstance(data_dir))
      expect(found).toEqual(instance)
      // The comparison above treats all redacted values as equal.
      expect(Redacted.value(found.nats.password)).toBe("hunter2")
      expect(Redacted.value(found.control_token)).toBe("control")
    }),
  )
  it.effect("names the certificate of a server with TLS", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      yield* publishInstance(data_dir, { ...instance, tls_cert: "/etc/almanac/server.pem" })
      const { tls_cert } = Option.getOrThrow(yield* findInstance(data_dir))
      expect(tls_cert).toBe("/etc/almanac/server.pem")
    }),
  )
  it.effect("is private and written in one step", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      yield* publishInstance(data_dir, instance)
      expect(statSync(fileIn(data_dir)).mode & 0o777).toBe(0o600)
      expect(readdirSync(join(data_dir, "run"))).toEqual(["instance.json"])
      const { control_token } = JSON.parse(readFileSync(fileIn(data_dir), "utf8"))
      expect(control_token).toBe("control")
    }),
  )
  it.effect("goes with a clean stop", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const scope = yield* Scope.make()
      yield* Scope.provide(publishInstance(data_dir, instance), scope)
      assert.isTrue(existsSync(fileIn(data_dir)))
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(existsSync(fileIn(data_dir)))
      expect(yield* findInstance(data_dir)).toEqual(Option.none())
    }),
  )
  it.effect("of a later instance stays when an earlier one stops", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const scope = yield* Scope.make()
      yield* Scope.provide(publishInstance(data_dir, instance), scope)
      yield* publishInstance(data_dir, { ...instance, started_at: "2026-11-20T00:00:01Z" })
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(existsSync(fileIn(data_dir)))
    }),
  )
  it.effect("is stale when its process is gone", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"])
      const pid = child.pid ?? 0
      yield* publishInstance(data_dir, { ...instance, pid })
      assert.isTrue(Option.isSome(yield* findInstance(data_dir)))
      child.kill("SIGKILL")
      yield* Effect.promise(() => once(child, "exit"))
      expect(yield* findInstance(data_dir)).toEqual(Option.none())
    }),
  )
  it.effect("is stale when its process id went to another process", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      yield* publishInstance(data_dir, instance)
      const file = JSON.parse(readFileSync(fileIn(data_dir), "utf8"))
      assert.match(file.process_start, /^\d+$/)
      writeFileSync(fileIn(data_dir), JSON.stringify({ ...file, process_start: "1" }))
      expect(yield* findInstance(data_dir)).toEqual(Option.none())
    }),
  )
  it.effect("names no instance when it is damaged, or asks for a group of processes", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      mkdirSync(join(data_dir, "run"))
      for (const text of ["", "{", JSON.stringify({ ...instance, pid: 0, process_start: null })]) {
        writeFileSync(fileIn(data_dir), text)
        expect(yield* findInstance(data_dir)).toEqual(Option.none())
      }
    }),
  )
})

describe("a node", () => {
  it.effect("makes its id once and keeps it", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      const made = yield* nodeId("", data_dir)
      assert.match(made, /^[0-9a-f-]{36}$/)
      expect(yield* nodeId("", data_dir)).toBe(made)
      expect(statSync(join(data_dir, "node-id")).mode & 0o777).toBe(0o600)
    }),
  )
  it.effect("has the id that is configured", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      expect(yield* nodeId("n1", data_dir)).toBe("n1")
      assert.isFalse(existsSync(join(data_dir, "node-id")))
    }),
  )
  it.effect("does not start with a damaged id", () =>
    Effect.gen(function* () {
      const data_dir = freshFolder()
      writeFileSync(join(data_dir, "node-id"), "a.b\n")
      assert.include(
        (yield* Effect.flip(nodeId("", data_dir))).message,
        "does not contain a node id",
      )
    }),
  )
})
