/** Commands as processes: interrupted while waiting, given too much input, or partially failed. */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { afterEach, beforeEach } from "vitest"
import { exit_codes } from "#cli/client/exit-code.ts"
import { program } from "../../world/server/server.ts"
import { json, type Script, scripted } from "./scripted.ts"

const root = join(import.meta.dirname, "../../..")
const wait_ms_max = 60_000
/** Less than the test timeout, so that a hung command is reported with its output. */
const verb_ms_max = 25_000

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "almanac-interrupted-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const started = (url: string, args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: root,
    stdio: "pipe",
    timeout: verb_ms_max,
    killSignal: "SIGKILL",
    env: { PATH: process.env.PATH, HOME: folder, ALMANAC_URL: url, ALMANAC_TOKEN: "t" },
  })
  const printed = { out: "", err: "" }
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
  const reading = () => {
    child.stdout.on("data", (part) => {
      printed.out += part
    })
  }
  child.stderr.on("data", (part) => {
    printed.err += part
  })
  return { child, printed, ended, reading }
}

const at = async (script: Script, work: (url: string, heard: () => number) => Promise<void>) => {
  const server = await scripted(script)
  try {
    await work(server.url, () => server.heard.length)
  } finally {
    await server.close()
  }
}

describe("a command that is interrupted", () => {
  it(
    "while it waits for a body ends",
    () =>
      at(
        (_, answer) => json(answer, 500, {}),
        async (url, heard) => {
          const verb = started(url, ["policies", "create", "--body", "-"])
          // The process has taken more than fits in a pipe, so it is reading.
          await new Promise((taken) => verb.child.stdin.write(Buffer.alloc(500_000, " "), taken))
          verb.child.kill("SIGINT")
          assert.equal(await verb.ended, exit_codes.interrupted[0], verb.printed.err)
          assert.match(verb.printed.err, /Interrupted/)
          assert.equal(heard(), 0)
        },
      ),
    wait_ms_max,
  )

  it(
    "ends while its output is not read",
    () => {
      const size = 50_000_000
      let sent = 0
      const script: Script = ({ path }, answer) => {
        if (path.includes("/stat")) {
          return void json(answer, 200, { exists: true, meta: { size, checksum: "" } })
        }
        answer.writeHead(200)
        const part = Buffer.alloc(1_000_000)
        const more = () => {
          for (let is_taken = true; is_taken && sent < size; sent += part.length) {
            is_taken = answer.write(part)
          }
        }
        answer.on("drain", more)
        more()
      }
      return at(script, async (url) => {
        const verb = started(url, ["blobs", "get", "0".repeat(32)])
        let before = -1
        // Waits until the pipe is full and its output is not read.
        while (sent === 0 || sent !== before) {
          before = sent
          await new Promise((resolve) => setTimeout(resolve, 300))
        }
        verb.child.kill("SIGINT")
        const code = await new Promise((resolve) => verb.child.on("exit", resolve))
        assert.equal(code, exit_codes.interrupted[0], verb.printed.err)
        verb.child.stdout.destroy()
      })
    },
    wait_ms_max,
  )
})

describe("a blob whose reader leaves before its end", () => {
  it(
    "is not verified, and its command does not claim it",
    () =>
      at(
        ({ path }, answer) =>
          path.includes("/stat")
            ? json(answer, 200, { exists: true, meta: { size: 2e7, checksum: "" } })
            : answer.writeHead(200).write(Buffer.alloc(1e7)),
        async (url) => {
          const verb = started(url, ["blobs", "get", "0".repeat(32)])
          verb.child.stdout.once("data", () => verb.child.stdout.destroy())
          assert.equal(await verb.ended, exit_codes.interrupted[0], verb.printed.err)
        },
      ),
    wait_ms_max,
  )
})

describe("a command with several arguments", () => {
  it(
    "reports the completed ones if the next one fails",
    () =>
      at(
        ({ path }, answer, nth) =>
          nth === 1 ? json(answer, 200, { deleted: true }) : json(answer, 403, { detail: path }),
        async (url) => {
          const ids = ["a".repeat(32), "b".repeat(32)]
          const verb = started(url, ["blobs", "rm", ...ids, "--json"])
          verb.reading()
          assert.equal(await verb.ended, exit_codes.forbidden[0], verb.printed.err)
          assert.deepEqual(JSON.parse(verb.printed.out), [{ id: ids[0], deleted: true }])
        },
      ),
    wait_ms_max,
  )
})

describe("a command with too many arguments", () => {
  it(
    "reads no image and no body that no server would take",
    () =>
      at(
        (_, answer) => json(answer, 500, {}),
        async (url, heard) => {
          const image = join(folder, "leaf.jpg")
          writeFileSync(image, "")
          truncateSync(image, 10 * 2 ** 30)
          const one = started(url, ["predict", image])
          assert.equal(await one.ended, exit_codes.usage[0], `image: ${one.printed.err}`)
          assert.match(one.printed.err, /longer than/)
          const two = started(url, ["policies", "create", "--body", "-"])
          two.child.stdin.on("error", () => undefined).end(Buffer.alloc(3 * 2 ** 20, " "))
          assert.equal(await two.ended, exit_codes.usage[0], `body: ${two.printed.err}`)
          assert.match(two.printed.err, /longer than/)
          const folders = started(url, ["predict", folder])
          assert.equal(await folders.ended, exit_codes.usage[0], `folder: ${folders.printed.err}`)
          assert.equal(heard(), 0)
        },
      ),
    wait_ms_max,
  )
})
