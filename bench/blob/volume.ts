/** Suite 15: the volume store's engine in process, without HTTP: puts, its index, its restart. */
import { randomFillSync } from "node:crypto"
import { readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import type { PutOrder } from "#actors/blob-storage/ports/engine.ts"
import type { BlobId } from "#schemas/blob-storage/blob.ts"
import { makeIndex, openVolume } from "#volume"
import { machine } from "../harness/machine.ts"
import { drive } from "../harness/round.ts"
import { type Contender, interleave, type Measured, orSkip, say } from "../harness/series.ts"
import type { Settings, Suite } from "../harness/suite.ts"
import { number, table } from "../harness/table.ts"
import { bareSegment, fileEach, type Put } from "./volume-bare.ts"

const sizes = [
  { name: "4 KiB", blob_bytes: 4096 },
  { name: "64 KiB", blob_bytes: 65_536 },
]
const in_flights = [1, 64, 256]

const ns_per_ms = 1_000_000n
const now = () => BigInt(Date.now()) * ns_per_ms

const order: PutOrder = {
  labels: {},
  expected_id: undefined,
  if_none_match: false,
  policy: "REPLICATION_POLICY_NONE",
  origin: { actor: "bench", request_id: "r", correlation_id: "c" },
}

const open = (dir: string) =>
  openVolume({
    dir,
    capacity_bytes: 2 ** 40,
    size_max_bytes: 2 ** 40,
    segment_bytes: 67_108_864,
    scrub_bytes_per_second: 0,
  })

type Engine = Awaited<ReturnType<typeof open>>

const putInto =
  (engine: Engine): Put =>
  async (_name, bytes) =>
    void (await engine.put(order, [bytes], now()))

/** Unique bytes in a separate buffer, because the bytes of a put must not change. */
const fresh = (template: Buffer, i: number) => {
  const bytes = Buffer.from(template)
  bytes.writeDoubleLE(i + 1, 0)
  return bytes
}

interface Putting extends Contender {
  /** The number of puts so far. */
  readonly puts: () => number
}

const contender = (name: string, put: Put, blob_bytes: number): Putting => {
  const template = randomFillSync(Buffer.alloc(blob_bytes))
  let done = 0
  return {
    name,
    puts: () => done,
    round: async (effort) => {
      const round = await drive((i) => put(`b${i}`, fresh(template, i)), done, effort)
      done += round.runs
      return round
    },
  }
}

/** The tables of one size, on new stores that are removed afterwards. */
const measurePuts = async (
  { name, blob_bytes }: (typeof sizes)[number],
  { folder, rounds, seconds, onEnd }: Settings,
) => {
  const place = (store: string) => join(folder, `${store}-${blob_bytes}`)
  const engine = await open(place("volume"))
  onEnd(() => engine.close())
  const segment = await bareSegment(place("segment"))
  onEnd(segment.stop)
  const files = await fileEach(place("files"))
  onEnd(files.stop)
  const ours = contender("volume", putInto(engine), blob_bytes)
  const seats = [
    ours,
    contender("bare segment", segment.put, blob_bytes),
    contender("file, fsync, rename, fsync", files.put, blob_bytes),
  ]
  const columns = { rate: "puts/s", per_run: 1, ours: "volume", latency: true }
  const measured: Array<Measured> = []
  const parts: Array<string> = []
  for (const in_flight of in_flights) {
    say(`${name}, ${in_flight} in flight`)
    const before = { batches: engine.status().batches, puts: ours.puts() }
    const effort = { in_flight, seconds, runs_max: Number.MAX_SAFE_INTEGER }
    const each = await interleave(seats, effort, rounds, folder)
    const syncs = (engine.status().batches - before.batches) / (ours.puts() - before.puts)
    measured.push(each)
    parts.push(`${name}, ${in_flight} in flight; ${number(syncs)} fdatasync per put of the volume:`)
    parts.push(table(each, columns))
  }
  for (const store of ["files", "segment"]) await rm(place(store), { recursive: true })
  return { measured, parts }
}

const million = 1_000_000
const index_counts = [10_000, 100_000, million]

const idOf = (n: number): BlobId =>
  // A BlobId is 32 hex digits.
  randomFillSync(Buffer.alloc(16))
    .fill(n & 0xff, 15)
    .toString("hex") as BlobId

/** Memory and time of the index alone. */
const indexLine = (count: number) => {
  const ids = Array.from({ length: count }, (_, n) => idOf(n))
  const index = makeIndex()
  const place = { file: 1, position: 8192, bytes: 4400, kind: "blob", is_large: false } as const
  const began = performance.now()
  for (const [n, id] of ids.entries()) index.set(id, { ...place, position: 8192 + n * 8 })
  const set = performance.now()
  for (const id of ids) index.find(id)
  const found = performance.now()
  const perBlob = (ms: number) => number((ms * 1e6) / count)
  return (
    `- index of ${count.toLocaleString("en-US")} blobs: ${number(index.bytes() / count)} bytes a ` +
    `blob; set ${perBlob(set - began)} ns, find ${perBlob(found - set)} ns`
  )
}

const small_bytes = 64
const small_in_flight = 256

/** The restart time of a volume with a million small blobs, with and without a checkpoint. */
const restart = async ({ folder }: Settings) => {
  say(`storing ${million} blobs`)
  const dir = join(folder, "restart")
  const engine = await open(dir)
  const template = randomFillSync(Buffer.alloc(small_bytes))
  const put = putInto(engine)
  const effort = { in_flight: small_in_flight, seconds: 600, runs_max: million }
  const { runs } = await drive((i) => put("", fresh(template, i)), 0, effort)
  await engine.close()
  const reopen = async () => {
    const began = performance.now()
    const again = await open(dir)
    const seconds = (performance.now() - began) / 1000
    const { blob_count } = await again.usage()
    await again.close()
    if (Number(blob_count) !== runs) throw new Error(`${blob_count} of ${runs} blobs came back`)
    return number(seconds)
  }
  const with_checkpoint = await reopen()
  const checkpoints = (await readdir(dir)).filter((name) => name.startsWith("checkpoint"))
  if (checkpoints.length === 0) throw new Error("the volume wrote no checkpoint")
  for (const name of checkpoints) await rm(join(dir, name))
  const without = await reopen()
  return (
    `- restart with ${runs.toLocaleString("en-US")} blobs of ${small_bytes} bytes: ` +
    `${with_checkpoint} s from the checkpoint, ${without} s without one`
  )
}

export const volume: Suite = async (settings) => {
  const all = []
  for (const size of sizes) all.push(await measurePuts(size, settings))
  const restarted = await orSkip("restart", () => restart(settings))
  const lines = [...index_counts.map(indexLine), restarted ?? ""].join("\n").trim()
  const { folder, rounds, seconds } = settings
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded, all in one ` +
    "process without HTTP; bytes that never repeat."
  const measured = all.flatMap((one) => one.measured)
  const parts = all.flatMap((one) => one.parts)
  return [await machine(folder, measured, []), spent, lines, ...parts].join("\n\n")
}
