import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import {
  GetObjectLockConfigurationCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from "@aws-sdk/client-s3"
import { Redacted } from "effect"
import { afterAll, assert, it } from "vitest"
import { describeWithRadosgw, s3Client } from "../world/programs/radosgw.ts"
import {
  childrenOf,
  cleanUp,
  isRunning,
  newFolder,
  outputOf,
  program,
  runVerb,
  startScript,
  startServer,
  until,
} from "../world/server/server.ts"

const up_ms_max = 60_000
/** Two servers start, and a job enrolls the bucket. */
const paste_ms_max = 240_000
/** Reuses the bootstrap's downloads, although the home is another folder. */
const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache")

afterAll(cleanUp)

/** The working folder of a server's children. */
const folderOf = (pid: number) => readFileSync(`/proc/${pid}/cwd/ceph.conf`, "utf8")

const start = async (args: ReadonlyArray<string>, data_dir = newFolder()) => {
  const one = startScript(data_dir, [program, "demo", "s3", ...args])
  await one.waitFor(/^bucket=\S+$/m, up_ms_max)
  const pairs = one.printed.stdout
    .trim()
    .split("\n")
    .map((line) => line.split("="))
  return { one, given: Object.fromEntries(pairs) }
}

describeWithRadosgw("almanac demo s3", () => {
  it("prints the access to a bucket with object lock, until it is stopped", async () => {
    const { one, given } = await start([])
    assert.deepEqual(Object.keys(given), ["endpoint", "access_key", "secret_key", "bucket"])
    const { endpoint, access_key, secret_key, bucket: Bucket } = given
    const keys = { access_key: Redacted.make(access_key), secret_key: Redacted.make(secret_key) }
    const client = s3Client({ endpoint, ...keys })
    const { ObjectLockConfiguration: lock } = await client.send(
      new GetObjectLockConfigurationCommand({ Bucket }),
    )
    assert.deepEqual(lock?.Rule?.DefaultRetention, { Mode: "GOVERNANCE", Days: 1 })
    await client.send(new PutObjectCommand({ Bucket, Key: "a", Body: "b" }))
    assert.equal((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount, 1)
    client.destroy()

    const children = childrenOf(one.pid)
    assert.lengthOf(children, 3)
    const [, folder = ""] = /^mon data = (.*)\/mon$/m.exec(folderOf(children[0] ?? 0)) ?? []
    assert.isTrue(existsSync(join(folder, "keyring")), folder)
    one.child.kill("SIGINT")
    assert.deepEqual(await one.ended, { code: 0, signal: null }, outputOf(one))
    assert.deepEqual(children.filter(isRunning), [])
    assert.isFalse(existsSync(folder))
    // The suggested commands go to standard error and contain no key.
    assert.include(one.printed.stderr, "secret put")
    assert.include(one.printed.stderr, `targets create --name demo --endpoint ${endpoint}`)
    assert.notInclude(one.printed.stderr, secret_key)
  })

  it(
    "prints commands that register the bucket when they are pasted",
    async () => {
      const server = await startServer(newFolder(), {})
      const { one } = await start([], server.data_dir)
      await until("the commands", up_ms_max, () => /^Continue with/m.test(one.printed.stderr))
      const { stderr } = one.printed
      assert.include(stderr, `A server runs on ${server.url}.`)
      const pasted = stderr.split("\n").filter((line) => line.startsWith("  "))
      const { status, stdout } = spawnSync("bash", ["-ec", pasted.join("\n")], {
        cwd: newFolder(),
        encoding: "utf8",
        env: { PATH: process.env.PATH, HOME: newFolder(), XDG_CACHE_HOME: cache },
      })
      assert.equal(status, 0, stdout)
      assert.match(stdout, /^status +available$/m)
      one.child.kill("SIGINT")
      await one.ended
    },
    paste_ms_max,
  )

  it("uses the given port and folder, and keeps the folder", async () => {
    const folder = join(newFolder(), "mine")
    mkdirSync(folder)
    const { one: first, given } = await start([])
    const port = new URL(given.endpoint).port
    const taken = await runVerb(newFolder(), ["demo", "s3", "--port", port])
    assert.equal(taken.code, 1)
    assert.equal(taken.stderr, `almanac: port ${port} of 127.0.0.1 is taken\n`)
    first.child.kill("SIGTERM")
    assert.deepEqual(await first.ended, { code: 0, signal: null })
    const { one, given: second } = await start(["--port", port, "--folder", folder])
    assert.equal(new URL(second.endpoint).port, port)
    assert.isTrue(existsSync(join(folder, "osd", "block")))
    one.child.kill("SIGINT")
    await one.ended
    assert.deepEqual(readdirSync(folder), [])
  })

  it("says what does not do as a port", async () => {
    const { code, stderr } = await runVerb(newFolder(), ["demo", "s3", "--port", "70000"])
    assert.deepEqual([code, stderr], [1, "almanac: --port must be between 1 and 65535\n"])
  })
})
