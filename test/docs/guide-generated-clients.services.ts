/**
 * Runs docs/guide-generated-clients.md as a developer does: generates both clients from a real
 * server's document with packages of the registries, compiles them and runs their programs.
 */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, it } from "vitest"
import { describeAbsent } from "../world/programs/absent.ts"
import { describeWithServer } from "../world/programs/nats.ts"
import { cleanUp, newFolder, type Server, startServer } from "../world/server/server.ts"
import { commandsIn, guideText, walk } from "./guide.ts"

const guide = guideText("guide-generated-clients.md")
const [introduction = "", ...sections] = guide.split(/^## /m)
const [setup = ""] = commandsIn(introduction)

const walk_ms_max = 540_000
const probe_ms_max = 60_000
/** More than a page of 100, so that both programs read a second page. */
const blobs = 101

/** `npx vitest` and `npm run` set variables that would direct npm to this checkout. */
const without_npm = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => name.startsWith("npm_"))
    .map((name) => [name, undefined]),
)

/** Whether the command that asks a registry for a package succeeds. */
const isServed = (program: string, ...args: ReadonlyArray<string>) => {
  try {
    execFileSync(program, args, { stdio: "ignore", timeout: probe_ms_max })
    return true
  } catch {
    return false
  }
}

const versionIn = (pattern: RegExp) => pattern.exec(guide)?.[0] ?? "a package that is not named"

const has_npm = isServed("npm", "view", versionIn(/openapi-fetch@[\d.]+/), "version")

const pip = ["-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
const has_pip =
  isServed("python3", "-c", "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))") &&
  isServed("python3", ...pip, versionIn(/openapi-python-client==[\d.]+/))

/** All modules of the generated package, more than the program imports. */
const import_all = `python - <<'PYTHON'
import importlib, pkgutil
import almanac_client
modules = [one.name for one in pkgutil.walk_packages(almanac_client.__path__, "almanac_client.")]
for name in modules:
    importlib.import_module(name)
print("imported", len(modules))
PYTHON
`

let server: Server

/** Runs the setup and one section in a new folder; returns the folder and the output. */
const walkSection = async (title: string, ...more: ReadonlyArray<string>) => {
  const work = newFolder()
  const section = sections.find((one) => one.startsWith(`${title}\n`)) ?? ""
  const env = { ...without_npm, URL: server.url, ALMANAC_DATA_DIR: server.data_dir }
  const { code, output } = await walk(work, [setup, ...commandsIn(section), ...more], env)
  assert.equal(code, 0, output)
  return { folder: join(work, "clients"), output }
}

/** The output of a program; the server has these blobs and one target. */
const printedBy = (listed: number) =>
  new RegExp(
    [
      "^stored [A-Za-z0-9+/]{22}==",
      `listed ${listed} with the new one: (true|True)`,
      "missing: blob not found on any node",
      "targets: 1$",
    ].join("\n"),
    "m",
  )

const send = async (method: string, path: string, token: string, body: object) => {
  const headers = { "x-auth-token": token, "content-type": "application/json" }
  const request = { method, headers, body: JSON.stringify(body) }
  const { status } = await fetch(new URL(path, server.url), request)
  assert.oneOf(status, [200, 202], path)
}

afterAll(cleanUp)

describeWithServer("docs/guide-generated-clients.md", () => {
  beforeAll(async () => {
    server = await startServer(newFolder(), { ALMANAC_COMPUTE__KIND: "none" })
    const { blob, tenant } = server.credentials
    for (let n = 0; n < blobs; n++) {
      const data = Buffer.from(`blob ${n}`).toString("base64")
      await send("PUT", "/v1/blobs", blob.token, { data })
    }
    const target = { name: "Backups", endpoint: "https://s3.example.org", bucket: "backups" }
    await send("POST", "/v1/targets", tenant.token, target)
  })
  afterAll(() => server?.stop())

  const registry = "Its packages come from a registry that cannot be reached."

  if (has_npm) {
    it(
      "leads to a client in TypeScript",
      async () => {
        const { output } = await walkSection("TypeScript")
        assert.match(output, printedBy(blobs + 1))
      },
      walk_ms_max,
    )
  } else describeAbsent("a client in TypeScript", "npm", registry)

  if (has_pip) {
    it(
      "leads to a client in Python, which lacks only bodies of NDJSON",
      async () => {
        const { folder, output } = await walkSection("Python", import_all)
        const stored_before = has_npm ? blobs + 1 : blobs
        assert.match(output, printedBy(stored_before + 1))
        assert.match(output, /^imported [3-9]\d\d$/m)
        const log = readFileSync(join(folder, "generate.log"), "utf8")
        const warnings = log.match(/^(WARNING|ERROR|Unable) .*$/gm)
        assert.deepEqual(warnings, [
          "WARNING parsing POST /v1/blobs/stream within blobs.",
          "WARNING parsing POST /v1/blobs/stat within blobs. Endpoint will not be generated.",
          "WARNING parsing POST /v1/blobs/get within blobs. Endpoint will not be generated.",
          "WARNING parsing GET /v1/admin/audit/export within audit_proofs.",
        ])
      },
      walk_ms_max,
    )
  } else describeAbsent("a client in Python", "Python 3.11 with pip", registry)
})
