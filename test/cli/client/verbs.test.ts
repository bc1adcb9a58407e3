/**
 * The command line against a real server: on a terminal, in pipes, interrupted, and with mistakes.
 */
import { spawn, spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, it } from "vitest"
import { exit_codes } from "#cli/client/exit-code.ts"
import { widthOf } from "#cli/client/table.ts"
import { describeWithServer } from "../../world/programs/nats.ts"
import {
  cleanUp,
  newFolder,
  program,
  runVerb,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import { has_terminal, onTerminal, seen } from "./terminal.ts"

const root = join(import.meta.dirname, "../../..")
const wait_ms_max = 60_000
const big_bytes = 20_000_000

let server: Server
let home: string
const env = (more = {}) => ({ HOME: home, ALMANAC_DATA_DIR: server.data_dir, ...more })
const run = (args: ReadonlyArray<string>, more = {}) =>
  runVerb(server.data_dir, args, { HOME: home, ...more })

/** A running command: its output so far, and a way to interrupt it like Ctrl-C. */
const started = (args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: root,
    env: { PATH: process.env.PATH, ...env() },
    stdio: "pipe",
  })
  const printed = { out: "", err: "" }
  child.stdout.on("data", (part) => {
    printed.out += part
  })
  child.stderr.on("data", (part) => {
    printed.err += part
  })
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
  return { child, printed, ended }
}

describeWithServer("almanac over HTTP", () => {
  beforeAll(async () => {
    home = newFolder()
    server = await startServer(newFolder(), { ALMANAC_COMPUTE__KIND: "none" })
  }, wait_ms_max)
  afterAll(cleanUp, wait_ms_max)

  it.runIf(has_terminal)(
    "shows tables that fit the terminal, coloured unless disabled",
    async () => {
      const narrow = await onTerminal(80, ["cluster", "status"], env())
      assert.equal(narrow.code, 0, narrow.text)
      const [head = "", row = ""] = seen(narrow.text).split("\n")
      assert.match(head, /^NODE ID +STATE +USED +CAPACITY +BLOB COUNT$/)
      assert.match(row, /^[0-9a-f-]{36} {2}active +\d+ B +[\d.]+ [GTP]iB +\d+$/)
      assert.isAtMost(Math.max(...[head, row].map(widthOf)), 80)
      assert.include(narrow.text, "\u001b[32mactive")
      const plain = await onTerminal(160, ["cluster", "status"], env({ NO_COLOR: "1" }))
      assert.match(plain.text, /ADDRESS\r\n/)
      assert.notInclude(plain.text, "\u001b[")
    },
  )

  it("answers programs in JSON, whole fields, or ids", async () => {
    const all = await run(["coverage", "ls", "--json", "-o", "share_id,protected"])
    const shares = JSON.parse(all.stdout)
    assert.equal(shares.length, 2)
    assert.deepEqual(Object.keys(shares[0]), ["share_id", "protected"])
    const ids = await run(["coverage", "ls", "-q"])
    const expected = shares.map(({ share_id }: { readonly share_id: string }) => share_id)
    assert.deepEqual(ids.stdout.trim().split("\n"), expected)
    assert.equal(ids.stderr, "")
  })

  it.runIf(has_terminal)(
    "stores and fetches bytes with a live line, and through pipes",
    async () => {
      const folder = newFolder()
      const path = join(folder, "big")
      writeFileSync(path, Buffer.alloc(big_bytes, "almanac "))
      const put = await onTerminal(100, ["blobs", "put", path, "--label", "Stage=100%25 ü"], env())
      assert.equal(put.code, 0, put.text)
      assert.match(put.text, /\[Kbig {2}\[#+-*\] +\d+% {2}[\d.]+ MiB \/ 19\.1 MiB/)
      const [, row = ""] = seen(put.text).split("\n")
      const id = row.split(" ")[0] ?? ""
      assert.match(row, /^[0-9a-f]{32} +19\.1 MiB {2}/)
      const got = await onTerminal(100, ["blobs", "get", id, join(folder, "copy")], env())
      assert.equal(got.code, 0, got.text)
      assert.match(got.text, /100% {2}19\.1 MiB \/ 19\.1 MiB/)
      assert.isTrue(readFileSync(join(folder, "copy")).equals(readFileSync(path)))
      const almanac = `'${process.execPath}' ${program}`
      const pipe = `printf hello | ${almanac} blobs put - -q | xargs ${almanac} blobs get`
      const piped = spawnSync("bash", ["-c", pipe], {
        cwd: root,
        encoding: "utf8",
        env: { PATH: process.env.PATH, ...env() },
      })
      assert.equal(piped.stdout, "hello", piped.stderr)
      const listed = await run(["blobs", "ls", "-l", "--label", "Stage=100%25 ü", "--json"])
      const [one] = JSON.parse(listed.stdout)
      assert.deepInclude(one, {
        id,
        size: big_bytes,
        policy: "REPLICA3",
        labels: { Stage: "100%25 ü" },
      })
    },
  )

  it("stores nothing of a put that is stopped in its middle", async () => {
    const before = (await run(["blobs", "ls", "-q"])).stdout
    const put = started(["blobs", "put", "-"])
    await new Promise((taken) => put.child.stdin.write(Buffer.alloc(big_bytes, 7), taken))
    put.child.kill("SIGINT")
    assert.equal(await put.ended, exit_codes.interrupted[0], put.printed.err)
    assert.match(put.printed.err, /Interrupted/)
    assert.equal((await run(["blobs", "ls", "-q"])).stdout, before)
  })

  it("follows events, reports its position when it is stopped, and resumes there", async () => {
    const follow = started(["events", "follow", "--after", "0", "--json"])
    await until("the first events", wait_ms_max, () => follow.printed.out.split("\n").length > 2)
    follow.child.kill("SIGINT")
    assert.equal(await follow.ended, 0, follow.printed.err)
    const events = follow.printed.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    // The stream's epoch, and a sequence number in it.
    const [, after = ""] = /--after [\w-]+-(\d+)\n$/.exec(follow.printed.err) ?? []
    assert.isAbove(Number(after), 0, follow.printed.err)
    const rest = await run(["events", "follow", "--after", "1", "--count", "1", "--json"])
    assert.equal(JSON.parse(rest.stdout).id, events[1]?.id)
  })

  it("ends with the code of what is wrong, and says what to do", async () => {
    const nobody = "0193f5a0-7c1e-7d3a-9b54-2f6f0c1d8e77"
    const away = { ALMANAC_URL: "http://127.0.0.1:1" }
    const foreign = { ALMANAC_URL: server.url, ALMANAC_TOKEN: "no-such-token" }
    const cases = [
      ["usage", ["backups", "create"], {}, /Missing required flag: --share-id/],
      ["usage", ["jobs", "list", "--bogus"], {}, /bogus/],
      [
        "usage",
        ["blobs", "ls", "--label", "prod"],
        {},
        /invalid value 'prod' for --label: expected name=value/,
      ],
      ["refused", ["predict", join(root, "package.json")], {}, /package\.json: 415: /],
      ["unreachable", ["jobs", "list"], away, /connection refused/],
      ["not_found", ["targets", "show", nobody], {}, /404 svc\.not_found/],
      ["forbidden", ["workers", "list", "--as", "tenant"], {}, /403 svc\.forbidden/],
      ["forbidden", ["jobs", "list"], foreign, /401 svc\.unauthorized.*token issue/s],
    ] as const
    for (const [ending, args, more, output] of cases) {
      const { code, stdout, stderr } = await run(args, more)
      assert.equal(code, exit_codes[ending][0], `${args.join(" ")}: ${stderr}`)
      assert.match(`${stdout}${stderr}`, output)
      assert.notMatch(stderr, /FATAL/)
    }
  })

  it("creates resources from flags, changes them, and reports rejections", async () => {
    const { share_id } = server.credentials.tenant
    const made = await run([
      "targets",
      "create",
      "--name",
      "t",
      "--endpoint",
      "http://127.0.0.1:9",
      "--bucket",
      "nightly",
      "-q",
    ])
    assert.equal(made.code, 0, made.stderr)
    const target_id = made.stdout.trim()
    const bad = await run(["targets", "update", target_id, "--bucket", "b"])
    assert.equal(bad.code, exit_codes.refused[0], bad.stderr)
    const policy = [
      "policies",
      "create",
      "--name",
      "nightly",
      "--share-id",
      share_id,
      "--target-id",
      target_id,
      "--schedule",
      "15 3 * * *",
      "--keep-daily",
      "7",
    ]
    const first = await run([...policy, "--no-enabled", "--exclude", "*.tmp", "--json"])
    assert.equal(first.code, 0, first.stderr)
    const { id, ...found } = JSON.parse(first.stdout)
    assert.deepInclude(found, { enabled: false, exclude_patterns: ["*.tmp"] })
    assert.deepEqual(found.retention.keep_daily, 7)
    const again = await run(policy)
    assert.equal(again.code, exit_codes.conflict[0], again.stderr)
    assert.match(again.stderr, /409 svc\.conflict/)
    const changed = await run([
      "policies",
      "update",
      id,
      "--schedule",
      "0 4 * * *",
      "-o",
      "schedule",
    ])
    assert.equal(changed.stdout, "schedule  0 4 * * *\n", changed.stderr)
    assert.equal((await run(["targets", "rm", target_id])).code, exit_codes.conflict[0])
    assert.equal((await run(["policies", "rm", id])).stderr, "Policy deleted.\n")
  })

  it("completes commands, nouns and flags in bash", async () => {
    const { stdout, code } = await run(["completion", "bash"])
    assert.equal(code, 0)
    const script = join(newFolder(), "completion")
    writeFileSync(script, stdout)
    const complete = (words: string) => {
      const ask = [
        `source '${script}'`,
        `COMP_LINE='${words}'; COMP_WORDS=(${words}); COMP_CWORD=${words.split(" ").length - 1}`,
        '_almanac; printf "%s\\n" $(IFS=" "; echo "$' + '{COMPREPLY[*]}")',
      ]
      return spawnSync("bash", ["-c", ask.join("\n")], { encoding: "utf8" }).stdout
    }
    assert.match(complete("almanac targ"), /^targets/m)
    assert.match(complete("almanac jobs wa"), /^watch/m)
    assert.match(complete("almanac backups create --sh"), /^--share-id/m)
  })

  it("loads nothing of the server", () => {
    const hook = `import { registerHooks } from "node:module"
      registerHooks({ load: (url, context, next) => {
        process.stderr.write("loaded " + url + "\\n")
        return next(url, context)
      } })`
    const { stderr } = spawnSync(
      process.execPath,
      ["--import", `data:text/javascript,${encodeURIComponent(hook)}`, "main.ts", "jobs", "list"],
      { cwd: root, encoding: "utf8", env: { PATH: process.env.PATH, ...env() } },
    )
    const ours = stderr.split("\n").flatMap((line) => {
      const [, path = ""] = /^loaded file:\/\/(.*)$/.exec(line) ?? []
      return path.startsWith(`${root}/`) ? [path.slice(root.length + 1)] : []
    })
    assert.include(ours, "cli/client/run.ts")
    const server_code = /^(gateway|actors|projections|events)\/|nats|sqlite|xstate|kysely|undici/
    assert.deepEqual(
      ours.filter((path) => server_code.test(path)),
      [],
    )
  })
})
