/**
 * `node test/process/kill/real-input.ts [--folder node_modules] [--files 5000]`: stores thousands
 * of real files over HTTP, kills the server in the middle, and reads them back. Prints its
 * measurements; exits with 1 if a byte or an event is missing.
 */
import assert from "node:assert/strict"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import {
  get_forms,
  getBlob,
  hashed,
  listBlobs,
  put_forms,
  putBlob,
} from "../../world/server/blob-client.ts"
import { type Client, connect, NoAnswer, responseText } from "../../world/server/client.ts"
import { type AuditEvent, auditEvents } from "../../world/server/history.ts"
import { readModelsEqualRebuilt } from "../../world/server/read-models.ts"
import {
  cleanUp,
  newFolder,
  peakBytes,
  runVerb,
  type Server,
  startServer,
  until,
} from "../../world/server/server.ts"
import { each } from "./check.ts"

const concurrency = 16
/** Page size of a list, small enough to need many pages. */
const list_limit = 500
/** A JSON body may contain 48 MiB; larger files are sent raw, or in many messages. */
const json_bytes_max = 8 * 2 ** 20
const drained_ms_max = 120_000
const mebibyte = 2 ** 20

const { values } = parseArgs({
  options: {
    folder: { type: "string", default: "node_modules" },
    files: { type: "string", default: "5000" },
  },
})
const wanted = Number(values.files)

/** Every file of a folder, sorted by name; hidden caches are excluded because they may change. */
const walk = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith("."))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return walk(path)
      return entry.isFile() ? [path] : []
    })

/** A sample of the files, spread over all of them, that always includes the largest ones. */
const choose = (paths: ReadonlyArray<string>) => {
  if (paths.length <= wanted) return paths
  const largest = paths
    .map((path) => ({ path, size: statSync(path).size }))
    .toSorted((one, other) => other.size - one.size)
    .slice(0, Math.ceil(wanted / 100))
    .map(({ path }) => path)
  const rest = paths.filter((path) => !largest.includes(path))
  const step = rest.length / (wanted - largest.length)
  const spread = Array.from({ length: wanted - largest.length }, (_, n) => {
    return rest[Math.floor(n * step)] ?? ""
  })
  return [...largest, ...spread].toSorted()
}

const percentile = (sorted: ReadonlyArray<number>, percent: number) =>
  (sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0).toFixed(1)

/** Operations per second, and their latencies. */
const rate = (took_ms: ReadonlyArray<number>, all_ms: number) => {
  const sorted = took_ms.toSorted((one, other) => one - other)
  const per_second = Math.round((took_ms.length * 1000) / all_ms)
  return `${per_second}/s, p50 ${percentile(sorted, 50)} ms, p99 ${percentile(sorted, 99)} ms`
}

interface Stored {
  readonly path: string
  readonly id: string
}

/** Puts files until `stop_after` of them are stored; returns the acknowledged ones. */
const putFiles = async (
  blobs: Client,
  paths: ReadonlyArray<string>,
  took_ms: Array<number>,
  onPut: (count: number) => boolean,
) => {
  const stored: Array<Stored> = []
  const left: Array<string> = []
  let is_over = false
  await each(paths, concurrency, async (path, n) => {
    if (is_over) {
      left.push(path)
      return
    }
    const bytes = readFileSync(path)
    const form = bytes.length > json_bytes_max ? "raw" : (put_forms[n % put_forms.length] ?? "raw")
    const since = performance.now()
    try {
      const answer = await putBlob(blobs, bytes, form)
      assert.equal(answer.status, 200, `${path}: ${responseText(answer)}`)
      took_ms.push(performance.now() - since)
      stored.push({ path, id: hashed(bytes).id })
      if (onPut(stored.length)) is_over = true
    } catch (cause) {
      if (!(cause instanceof NoAnswer && is_over)) throw cause
      left.push(path)
    }
  })
  return { stored, left }
}

const timed = async <A>(work: () => Promise<A>) => {
  const since = performance.now()
  const answer = await work()
  return { answer, ms: performance.now() - since }
}

const checkAudit = async (admin: Client, ids: ReadonlySet<string>) => {
  let events: ReadonlyArray<AuditEvent> = []
  const stored = () => events.filter(({ type }) => type === "BlobStored")
  await until("every blob's event in the log", drained_ms_max, async () => {
    events = await auditEvents(admin, events)
    return stored().length >= ids.size
  })
  const subjects = stored().map(({ subject }) => subject)
  assert.equal(subjects.length, ids.size, "events in the audit log")
  assert.deepEqual(new Set(subjects), ids, "the audit log lists the existing blobs")
  return subjects.length
}

const readBack = async (blobs: Client, files: ReadonlyArray<Stored>) => {
  const took_ms: Array<number> = []
  const { ms } = await timed(() =>
    each(files, concurrency, async ({ path, id }, n) => {
      const since = performance.now()
      const { size } = statSync(path)
      const form = size > json_bytes_max ? "raw" : (get_forms[n % get_forms.length] ?? "raw")
      const bytes = await getBlob(blobs, id, form)
      took_ms.push(performance.now() - since)
      assert(bytes.equals(readFileSync(path)), `${path} came back as other bytes`)
    }),
  )
  return { took_ms, ms }
}

const say = (name: string, value: unknown) => console.log(`${name.padEnd(30)}${value}`)

/** The server's peak memory so far. */
const sayPeak = (when: string, { pid }: Server) =>
  say(`memory, peak ${when}`, `${(peakBytes(pid) / mebibyte).toFixed(0)} MiB`)

const readAndCheck = async (server: Server, files: ReadonlyArray<Stored>) => {
  const { url, credentials, data_dir } = server
  const blobs = connect(url, credentials.blob.token)
  const admin = connect(url, credentials.admin.token)
  try {
    const ids = new Set(files.map(({ id }) => id))
    const list = await timed(() => listBlobs(blobs, list_limit))
    assert.deepEqual(new Set(list.answer), ids, "the list is what was put")
    assert.equal(list.answer.length, ids.size, "and has nothing twice")
    const pages = Math.ceil(ids.size / list_limit)
    say("listed", `${list.answer.length} in ${pages} pages, ${list.ms.toFixed(0)} ms`)
    const gets = await readBack(blobs, files)
    say("gets, every byte compared", rate(gets.took_ms, gets.ms))
    sayPeak("after the gets", server)
    const count = await checkAudit(admin, ids)
    say("BlobStored in the audit log", `${count}; distinct blobs ${ids.size}`)
    await readModelsEqualRebuilt(admin, data_dir)
    say("read models", "equal to their rebuild")
    const verified = await timed(() => runVerb(data_dir, ["audit", "verify"]))
    assert.equal(verified.answer.code, 0, verified.answer.stdout + verified.answer.stderr)
    say("audit verify", `${verified.answer.stdout.trim()} (${verified.ms.toFixed(0)} ms)`)
  } finally {
    blobs.close()
    admin.close()
  }
}

const main = async () => {
  const paths = choose(walk(values.folder))
  const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0)
  const largest = Math.max(...paths.map((path) => statSync(path).size))
  say("files", `${paths.length} of ${values.folder}`)
  say(
    "bytes",
    `${(bytes / mebibyte).toFixed(1)} MiB, largest ${(largest / mebibyte).toFixed(1)} MiB`,
  )

  const data_dir = newFolder()
  const took_ms: Array<number> = []
  const first = await startServer(data_dir)
  say("start", `${first.ready_ms.toFixed(0)} ms`)
  const before = connect(first.url, first.credentials.blob.token)
  let killed: Promise<void> | undefined
  const half = await timed(() =>
    putFiles(before, paths, took_ms, (count) => {
      if (count < paths.length / 2) return false
      if (killed === undefined) sayPeak("before the kill", first)
      killed ??= first.killAll()
      return true
    }),
  )
  await killed
  before.close()
  say("killed", `after ${half.answer.stored.length} acknowledged puts, by SIGKILL`)

  const second = await startServer(data_dir)
  say("start after the kill", `${second.ready_ms.toFixed(0)} ms`)
  const after = connect(second.url, second.credentials.blob.token)
  const rest = await timed(() => putFiles(after, half.answer.left, took_ms, () => false))
  after.close()
  say("puts", rate(took_ms, half.ms + rest.ms))
  sayPeak("after the puts", second)
  await readAndCheck(second, [...half.answer.stored, ...rest.answer.stored])
  sayPeak("at the end", second)
  const stopped = await timed(second.stop)
  assert.deepEqual(stopped.answer, { code: 0, signal: null })
  say("stop", `${stopped.ms.toFixed(0)} ms, exit code 0`)
}

try {
  const { ms } = await timed(main)
  console.log(`real input: passed in ${(ms / 1000).toFixed(1)} s`)
} catch (cause) {
  console.error(cause)
  console.log("real input: FAILED")
  process.exitCode = 1
} finally {
  await cleanUp()
}
