import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { CreateBucketCommand, HeadBucketCommand, PutObjectCommand } from "@aws-sdk/client-s3"
import { assert, it } from "@effect/vitest"
import { Effect, Redacted, Schedule } from "effect"
import { radosgw } from "#adapters/share-protection/radosgw.ts"
import { temporaryFolder } from "../../../world/programs/nats.ts"
import { describeWithRadosgw, s3Client, testRadosgw } from "../../../world/programs/radosgw.ts"

/** Ids of the processes that use this folder's configuration. */
const processesOf = (folder: string) =>
  readdirSync("/proc").filter((name) => {
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0")
      return words.includes(join(folder, "ceph.conf"))
    } catch {
      // Not a process, or one that has just exited.
      return false
    }
  })

const eventually = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: Boolean, schedule: Schedule.spaced(20) }),
    Effect.timeout("20 seconds"),
  )

const holder = fileURLToPath(new URL("hold-radosgw.ts", import.meta.url))

describeWithRadosgw("radosgw", () => {
  for (const store of ["memstore", "bluestore"] as const) {
    it.live(`takes objects into a ${store}, and nothing is left of it afterwards`, () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        yield* Effect.scoped(
          Effect.gen(function* () {
            const server = yield* radosgw({ folder, store })
            const client = s3Client(server)
            const put = { Bucket: "bucket", Key: "key", Body: "body" }
            yield* Effect.promise(() => client.send(new CreateBucketCommand({ Bucket: "bucket" })))
            yield* Effect.promise(() => client.send(new PutObjectCommand(put)))
            assert.lengthOf(processesOf(folder), 3)
            const secret = Redacted.value(server.secret_key)
            const lines = processesOf(folder).map((id) => readFileSync(`/proc/${id}/cmdline`))
            assert.notInclude(Buffer.concat(lines).toString(), secret)
          }),
        )
        assert.deepEqual(processesOf(folder), [])
        assert.deepEqual(readdirSync(folder), [])
      }),
    )
  }

  it.live("comes back at the same endpoint with what it had", () =>
    Effect.gen(function* () {
      const server = yield* testRadosgw
      const { bucket } = yield* server.bucket()
      const client = s3Client(server)
      const head = () => client.send(new HeadBucketCommand({ Bucket: bucket }))
      yield* server.stop
      const { message } = yield* Effect.flip(Effect.tryPromise({ try: head, catch: asError }))
      assert.include(message, "ECONNREFUSED")
      yield* server.start
      yield* Effect.promise(head)
    }),
  )

  it.live("leaves nothing running when its process is killed, and its folder serves again", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const child = spawn(process.execPath, [holder, folder], { stdio: "ignore" })
      yield* eventually(() => existsSync(join(folder, "client.rgw.log")))
      assert.isAbove(processesOf(folder).length, 0)
      child.kill("SIGKILL")
      yield* eventually(() => processesOf(folder).length === 0)
      assert.include(readdirSync(folder), "keyring")
      const { endpoint } = yield* radosgw({ folder, store: "memstore" })
      assert.match(endpoint, /^http:\/\/127\.0\.0\.1:\d+$/)
    }),
  )

  it.live("takes no folder that holds somebody's files", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      mkdirSync(join(folder, "mon"))
      writeFileSync(join(folder, "thesis.txt"), "text")
      const failure = yield* Effect.flip(
        Effect.map(radosgw({ folder, store: "memstore" }), ({ endpoint }) => endpoint),
      )
      assert.equal(failure.message, `${folder} cannot be used: it is not empty`)
      assert.sameMembers(readdirSync(folder), ["mon", "thesis.txt"])
    }),
  )

  it.live("takes no port that another server has", () =>
    Effect.gen(function* () {
      const first = yield* testRadosgw
      const folder = yield* temporaryFolder
      const port = Number(new URL(first.endpoint).port)
      const failure = yield* Effect.flip(
        Effect.map(radosgw({ folder, store: "memstore", port }), ({ endpoint }) => endpoint),
      )
      assert.equal(failure.message, `port ${port} of 127.0.0.1 is taken`)
    }),
  )
})

const asError = (cause: unknown) => (cause instanceof Error ? cause : new Error(String(cause)))
