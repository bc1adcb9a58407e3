/**
 * PostgreSQL over TLS, as set in its URL: accepts only a server certificate that the authority
 * signed.
 */
import { execFileSync } from "node:child_process"
import { chmodSync, chownSync, mkdirSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { postgres } from "#postgres"
import { openDatabase } from "#projections/read-model.ts"
import { blueprint } from "#projections/system/webhook-model.ts"
import { startServer, unprivileged } from "../../bench/harness/postgres-server.ts"
import { temporaryFolder } from "../world/programs/nats.ts"
import { describePostgres, optionsOf } from "../world/programs/postgres.ts"

/** A key and a certificate, signed by the authority `by`, or self-signed. */
const certificate = (
  folder: string,
  name: string,
  by: string,
  more: ReadonlyArray<string> = [],
) => {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
  const files = ["-keyout", `${name}.key`, "-out", `${name}.pem`, "-subj", `/CN=${name}`]
  const signer = by === name ? [] : ["-CA", `${by}.pem`, "-CAkey", `${by}.key`]
  execFileSync("openssl", ["req", "-x509", ...key, ...files, ...signer, ...more], {
    cwd: folder,
    stdio: "pipe",
  })
}

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })

/** A server that accepts only encrypted connections; returns its port. */
const encrypted = (folder: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const named = ["-addext", "subjectAltName=DNS:localhost"]
      for (const name of ["ours", "theirs"]) certificate(folder, name, name)
      certificate(folder, "server", "ours", [...named, "-addext", "basicConstraints=CA:FALSE"])
      const { uid, gid } = unprivileged()
      if (uid !== undefined && gid !== undefined) chownSync(join(folder, "server.key"), uid, gid)
      chmodSync(join(folder, "server.key"), 0o600)
      const port = await freePort()
      const stops: Array<() => Promise<void>> = []
      const scratch = join(folder, "scratch")
      mkdirSync(scratch)
      chmodSync(folder, 0o711)
      await startServer(scratch, (stop) => stops.push(stop), [
        "fsync=off",
        "listen_addresses=127.0.0.1",
        `port=${port}`,
        "ssl=on",
        `ssl_cert_file=${join(folder, "server.pem")}`,
        `ssl_key_file=${join(folder, "server.key")}`,
      ])
      return { port, stop: () => Promise.all(stops.map((stop) => stop())) }
    }),
    ({ stop }) => Effect.promise(stop),
  )

describePostgres("a read model in PostgreSQL over TLS", () => {
  it.live(
    "is opened where the server is who its certificate says, and nowhere else",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const { port } = yield* encrypted(folder)
        const opened = (host: string, authority: string) => {
          const ca = encodeURIComponent(join(folder, authority))
          const tls = `sslmode=verify-full&sslrootcert=${ca}`
          const url = `postgresql://postgres@${host}:${port}/postgres?${tls}`
          return Effect.flatMap(Layer.build(postgres(optionsOf(url))), (around) =>
            Effect.provideContext(openDatabase(blueprint), around),
          ).pipe(Effect.timeout("5 seconds"))
        }
        const { dump } = yield* opened("localhost", "ours.pem")
        assert.isAbove(Object.keys(yield* dump).length, 1)
        const reported = (host: string, authority: string) =>
          Effect.map(Effect.flip(opened(host, authority)), (failure) => String(failure))
        assert.match(yield* reported("localhost", "theirs.pem"), /certificate/)
        assert.match(yield* reported("127.0.0.1", "ours.pem"), /altnames|certificate/)
      }).pipe(Effect.scoped),
    60_000,
  )
})
