/**
 * The view of other users of the machine during a backup: the process list and the data folder.
 * Everything is real: the server, its worker, restic, nats-server and an S3 server.
 */
import assert from "node:assert/strict"
import { randomBytes } from "node:crypto"
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Bucket } from "#actors/share-protection/ports/buckets.ts"
import { describeWithRadosgw, startRadosgw } from "../world/programs/radosgw.ts"
import {
  childrenOf,
  cleanUp,
  newFolder,
  type Server,
  startServer,
  until,
} from "../world/server/server.ts"
import { passwordOf } from "../world/server/share-repository.ts"
import {
  enroll,
  shareFolder,
  step_ms_max,
  type Tenant,
  tenantOf,
} from "../world/server/share-tenant.ts"

/** Slow enough that the backup of `large_bytes` takes a few seconds. */
const upload_kib_per_second = 2_000
const large_bytes = 6_000_000

interface Seen {
  readonly argv: string
  readonly environ: string
}

const jwt_secret = randomBytes(32).toString("hex")

/** All descendants of a process in /proc; processes that have ended are left out. */
const processesBelow = (pid: number): ReadonlyArray<Seen> =>
  childrenOf(pid).flatMap((child) => {
    try {
      const contents = (name: string) => readFileSync(`/proc/${child}/${name}`, "utf8")
      return [{ argv: contents("cmdline"), environ: contents("environ") }, ...processesBelow(child)]
    } catch {
      return []
    }
  })

const filesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))

/** All tokens, passwords and keys in a JSON file, at any depth. */
const secretsIn = (path: string) =>
  [...readFileSync(path, "utf8").matchAll(/"\w*(?:token|password)"\s*:\s*"([^"]{16,})"/g)].map(
    ([, secret = ""]) => secret,
  )

describeWithRadosgw("while a backup runs", () => {
  let s3: Awaited<ReturnType<typeof startRadosgw>>
  let server: Server
  let tenant: Tenant
  let bucket: Bucket
  let secrets: ReadonlyArray<string>
  const seen = new Map<string, Seen>()

  beforeAll(async () => {
    s3 = await startRadosgw()
    server = await startServer(newFolder(), {
      ALMANAC_AUTH__JWT__HS256_SECRET: jwt_secret,
      ALMANAC_ENGINE__UPLOAD_KIB_PER_SECOND: String(upload_kib_per_second),
    })
    tenant = tenantOf(server)
    bucket = await s3.newBucket()
    const target_id = await enroll(server, tenant, bucket)
    const { share_id, trust_id } = server.credentials.tenant
    const large = randomBytes(large_bytes)
    writeFileSync(join(shareFolder(server, tenant, share_id), "large.bin"), large)
    const { backup } = await tenant.made("/v1/backups", { share_id, target_id })
    await until("the backup's end", step_ms_max, async () => {
      for (const one of processesBelow(server.pid)) seen.set(one.argv, one)
      const { status } = await tenant.request("GET", `/v1/backups/${backup?.id}`)
      assert.notEqual(status, "error")
      return status === "available"
    })
    const { repository_password_ref } = await tenant.request("GET", `/v1/targets/${target_id}`)
    const password = await Effect.runPromise(
      passwordOf(server.data_dir, trust_id, repository_password_ref),
    )
    secrets = [
      jwt_secret,
      Redacted.value(password),
      Redacted.value(bucket.secret_key),
      ...secretsIn(join(server.data_dir, "dev-credentials.json")),
      ...secretsIn(join(server.data_dir, "run", "instance.json")),
      ...["cursor-key", "webhook-key"].map((name) =>
        readFileSync(join(server.data_dir, name), "utf8").trim(),
      ),
    ]
  }, 3 * step_ms_max)

  afterAll(async () => {
    tenant?.close()
    await cleanUp()
    await s3?.close()
  }, step_ms_max)

  const of = (program: string) => {
    const found = [...seen.values()].filter(({ argv }) => argv.split("\0")[0]?.includes(program))
    expect(found, `processes of ${program}`).not.toEqual([])
    return found
  }

  it("no command line contains a secret", () => {
    expect(secrets.length).toBeGreaterThan(10)
    for (const { argv } of [...of("restic"), ...of("nats-server"), ...of("node")]) {
      for (const secret of secrets) expect(argv).not.toContain(secret)
    }
  })

  it("the engine and the bus receive only their own secrets, and none of the server's", () => {
    for (const { environ } of [...of("restic"), ...of("nats-server")]) {
      expect(environ).not.toContain(jwt_secret)
      expect(environ).not.toMatch(/ALMANAC_(?!NATS_)/)
    }
    for (const { environ } of of("nats-server")) {
      expect(environ).not.toContain(Redacted.value(bucket.secret_key))
    }
  })

  it("only the owner can read the data folder and each file with a secret", () => {
    const mode = (path: string) => statSync(path).mode & 0o777
    expect(mode(server.data_dir)).toBe(0o700)
    const open = filesBelow(server.data_dir).filter((path) => (mode(path) & 0o077) !== 0)
    const revealing = open.filter((path) => {
      const bytes = readFileSync(path)
      return secrets.some((secret) => bytes.includes(secret))
    })
    expect(revealing).toEqual([])
    // No file is writable by other users.
    expect(open.filter((path) => (mode(path) & 0o022) !== 0)).toEqual([])
    for (const name of ["audit-key.pem", "webhook-key", "cursor-key", "dev-credentials.json"]) {
      expect(mode(join(server.data_dir, name)), name).toBe(0o600)
    }
    for (const name of ["vault", "identity", "run", "nats", "shares", "blobs", "read-models"]) {
      expect(mode(join(server.data_dir, name)), name).toBe(0o700)
    }
  })

  it("the signal of Node's debugger opens none, and the server continues", async () => {
    server.signal("SIGUSR1")
    expect((await fetch(new URL("/livez", server.url))).status).toBe(200)
    expect(server.printed.stderr).not.toMatch(/Debugger listening/)
    expect(readFileSync(`/proc/${server.pid}/net/tcp`, "utf8")).not.toMatch(/ 0100007F:240D /)
  })
})
