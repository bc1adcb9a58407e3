/** TLS with a private authority, named by a profile, a variable or a cloud. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { afterAll, beforeAll } from "vitest"
import { type AccessOptions, accessOf } from "#cli/client/access.ts"
import { httpOf } from "#cli/client/http.ts"
import { certificate } from "../../world/certificate.ts"
import { endingOf } from "./scripted.ts"

const folder = mkdtempSync(join(tmpdir(), "almanac-client-tls-"))
const at = (name: string) => join(folder, name)
const { signal } = new AbortController()

let server: Server
let port: number
beforeAll(async () => {
  for (const name of ["ours", "theirs"]) certificate({ folder, name })
  certificate({ folder, name: "server", by: "ours", for: "DNS:localhost" })
  const pem = { key: readFileSync(at("server.key")), cert: readFileSync(at("server.pem")) }
  server = createServer(pem, (_, answer) =>
    answer.writeHead(200, { "content-type": "application/json" }).end('{"id":"v1"}'),
  )
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  // The server listens on TCP.
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

const sendRequest = async (
  env: NodeJS.ProcessEnv,
  profile?: string,
  more: Partial<AccessOptions> = {},
) => {
  const access = await accessOf({
    env: { HOME: folder, ...env },
    profile,
    data_dir: at("none"),
    signal,
    ...more,
  })
  const http = httpOf(access)
  try {
    return (await http.json({ method: "GET", path: "/v1/", need: "none", signal })).body
  } finally {
    http.close()
  }
}
/**
 * Calls the server of a data folder that has this certificate in its settings or its instance file.
 */
const askedAs = (tls_cert: string, own?: string) => {
  const data_dir = at("data")
  mkdirSync(join(data_dir, "run"), { recursive: true })
  const url = `https://127.0.0.1:${port}`
  const file = { url, ...(own !== undefined && { tls_cert: at(own) }) }
  writeFileSync(join(data_dir, "run", "instance.json"), JSON.stringify(file), { mode: 0o600 })
  return sendRequest({}, undefined, { data_dir, tls_cert: at(tls_cert) })
}
const named = (host: string) => ({ ALMANAC_URL: `https://${host}:${port}` })

describe("the server of a data folder", () => {
  it("is trusted by its certificate alone, with any issuer", async () => {
    assert.deepEqual(await askedAs("server.pem"), { id: "v1" })
  })

  it("is trusted only by the certificate in its instance file", async () => {
    assert.deepEqual(await askedAs("none.pem", "server.pem"), { id: "v1" })
    assert.equal((await endingOf(askedAs("server.pem", "theirs.pem"))).ending, "unreachable")
  })

  it("is rejected with another certificate of the same authority", async () => {
    certificate({ folder, name: "other", by: "ours" })
    for (const name of ["other.pem", "theirs.pem"]) {
      const { ending, message } = await endingOf(askedAs(name))
      assert.equal(ending, "unreachable")
      assert.match(message, /certificate/i)
    }
  })

  it("is rejected with another certificate of an authority in its chain", async () => {
    const own = ["other.pem", "ours.pem"].map((name) => readFileSync(at(name), "utf8"))
    writeFileSync(at("chain.pem"), own.join(""))
    const { ending, message } = await endingOf(askedAs("chain.pem"))
    assert.equal(ending, "unreachable")
    assert.match(message, /certificate/i)
  })
})

describe("a server by an authority of one's own", () => {
  it("is trusted if a variable or a profile names the authority", async () => {
    const answer = { id: "v1" }
    assert.deepEqual(
      await sendRequest({ ...named("localhost"), ALMANAC_CACERT: at("ours.pem") }),
      answer,
    )
    assert.deepEqual(
      await sendRequest({ ...named("localhost"), OS_CACERT: at("ours.pem") }),
      answer,
    )
    const path = at("profiles.toml")
    writeFileSync(path, `[own]\nurl = "https://localhost:${port}"\nca = "${at("ours.pem")}"\n`)
    assert.deepEqual(await sendRequest({ ALMANAC_PROFILES: path }, "own"), answer)
  })

  it.each([
    ["without it", {}, "localhost"],
    ["by another", { ALMANAC_CACERT: at("theirs.pem") }, "localhost"],
    ["under another name", { ALMANAC_CACERT: at("ours.pem") }, "127.0.0.1"],
  ])("is refused %s", async (_, env, host) => {
    const { ending, message } = await endingOf(sendRequest({ ...named(host), ...env }))
    assert.equal(ending, "unreachable")
    assert.match(message, /certificate/i)
  })

  it("is rejected despite NODE_TLS_REJECT_UNAUTHORIZED=0", async () => {
    const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"
    try {
      assert.equal((await endingOf(sendRequest(named("localhost")))).ending, "unreachable")
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before
    }
  })

  it("receives no request if the authority's file is missing", async () => {
    const env = { ...named("localhost"), ALMANAC_CACERT: at("none.pem") }
    const { ending, message } = await endingOf(sendRequest(env))
    assert.equal(ending, "usage")
    assert.include(message, at("none.pem"))
  })
})
