/** Commands next to a server, when only the server was configured with its certificate. */
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { afterAll, beforeAll, it } from "vitest"
import { certificate } from "../../world/certificate.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import { cleanUp, newFolder, runVerb, type Server, startServer } from "../../world/server/server.ts"

const minutes_ms = 180_000

afterAll(cleanUp)

describeWithServer("a server whose TLS is set in its own environment", () => {
  let server: Server
  let cert: string
  beforeAll(async () => {
    const files = certificate({ folder: newFolder(), name: "server" })
    cert = files.cert
    server = await startServer(newFolder(), {
      ALMANAC_TLS__CERT: relative(process.cwd(), cert),
      ALMANAC_TLS__KEY: files.key,
    })
  }, minutes_ms)

  it("the instance file names the certificate, from the root", () => {
    const file = JSON.parse(readFileSync(join(server.data_dir, "run", "instance.json"), "utf8"))
    assert.equal(file.tls_cert, cert)
  })

  it.each([
    ["audit list", ["audit", "list"]],
    ["targets list", ["targets", "list"]],
  ])(
    "%s works without a TLS setting",
    async (_, words) => {
      const { code, stderr } = await runVerb(server.data_dir, words)
      assert.equal(code, 0, stderr)
    },
    minutes_ms,
  )

  it(
    "doctor asks it, and finds it with TLS",
    async () => {
      const open = { ALMANAC_API__BIND_HOST: "0.0.0.0" }
      const { stdout } = await runVerb(server.data_dir, ["doctor"], open)
      assert.match(stdout, /^ok {4}read model /m)
      assert.match(stdout, /^\w+ +tls +\S+server\.pem is valid until /m)
      assert.doesNotMatch(stdout, /ENOENT|without TLS/)
    },
    minutes_ms,
  )
})
