/**
 * Imports of carriers killed at random moments, followed by one that completes. Until then the
 * mirror is the complete previous one; in the end it equals an undisturbed import.
 */
import assert from "node:assert/strict"
import { createHash } from "node:crypto"
import { once } from "node:events"
import {
  copyFileSync,
  createWriteStream,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import Sqlite from "better-sqlite3"
import { seeded } from "../../world/seeded.ts"
import { outputOf, runVerb, startVerb } from "../../world/server/server.ts"

/** Maximum memory of an import, in MB. Measured: 300 to 330 with two million rows. */
export const import_mb_max = 380
/** One in this many dockets is also in Motus. */
const motus_each = 15
/** One in this many dockets has two more carriers, without a USDOT number. */
const unnumbered_each = 8
const text_chars = 1_000_000
const look_ms = 5

export interface MirrorRound {
  /** The moment of the kill, as a fraction (0 to 1) of the undisturbed import's time. */
  readonly moment: number
  /** Whether the new mirror was already in place. */
  readonly is_new: boolean
  readonly took_ms: number
}

export interface Undisturbed {
  readonly took_ms: number
  /** Peak memory of the process, in MB. */
  readonly held_mb: number
  readonly carriers: number
}

const heads = {
  legacy: "docket_number,dot_number,common_stat,contract_stat,broker_stat,legal_name\n",
  motus: "docket_number,usdot_number,op_auth_type,op_auth_status,legal_name\n",
}

/** Writes both files with `rows` dockets in shuffled order; deterministic for a seed. */
export const writeFiles = async (
  folder: string,
  seed: number,
  rows: number,
  has_unnumbered = false,
) => {
  mkdirSync(folder, { recursive: true })
  const random = seeded(seed)
  const open = (kind: keyof typeof heads) => {
    const file = createWriteStream(join(folder, `${kind}.csv`))
    return { file, text: heads[kind] }
  }
  const [legacy, motus] = [open("legacy"), open("motus")]
  const flush = async (one: typeof legacy, chars: number) => {
    if (one.text.length <= chars) return
    if (!one.file.write(one.text)) await once(one.file, "drain")
    one.text = ""
  }
  // Multiples of a prime visit each docket once, in shuffled order.
  const step = 7_368_787
  for (let n = 0; n < rows; n++) {
    const mc = 1 + ((n * step) % rows)
    const name = mc % 12 === 0 ? `"SMITH, ""J"" & SONS ${mc}"` : `CARRIER TRUCKING ${mc} LLC`
    const status = () => (random.next() < 0.3 ? "A" : "I")
    const dot = String(1_000_000 + mc).padStart(8, "0")
    legacy.text += `MC${mc},${dot},${status()},${status()},${status()},${name}\n`
    if (has_unnumbered && n % unnumbered_each === 0) {
      legacy.text += `MC${mc},,A,N,N,SECOND OF ${mc}\nMC${mc},,N,A,N,FIRST OF ${mc}\n`
    }
    if (n % motus_each === 0) {
      const type = random.pick(["Motor Carrier of Property", "Broker of Property"])
      const state = random.pick(["Active", "Pending", "Inactive"])
      motus.text += `MC${String(mc).padStart(10, "0")},${dot},${type},${state},${name}\n`
    }
    await flush(legacy, text_chars)
    await flush(motus, text_chars)
  }
  for (const one of [legacy, motus]) {
    await flush(one, 0)
    one.file.end()
    await once(one.file, "finish")
  }
  return [join(folder, "legacy.csv"), join(folder, "motus.csv")] as const
}

const mirrorOf = (data_dir: string) => join(data_dir, "carriers.sqlite")

/** The mirror's rows, without their import times. */
const contentOf = (data_dir: string) => {
  const file = new Sqlite(mirrorOf(data_dir), { readonly: true })
  try {
    const hash = createHash("sha256")
    const rows = file.prepare("select cast(key as text), name, cell from carrier order by key")
    for (const row of rows.raw().iterate()) hash.update(JSON.stringify(row))
    const counts = file.prepare("select is_demo, numbers, carriers from import").get()
    const sources = file.prepare("select kind, rows from source order by kind").all()
    assert.equal(file.pragma("quick_check", { simple: true }), "ok")
    return JSON.stringify([hash.digest("hex"), counts, sources])
  } finally {
    file.close()
  }
}

const heldBy = (pid: number) => {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])
  } catch {
    return 0
  }
}

/** An undisturbed import, and its cost. */
const toEnd = async (data_dir: string, files: ReadonlyArray<string>): Promise<Undisturbed> => {
  const since = performance.now()
  const run = startVerb(data_dir, ["carriers", "import", ...files])
  const ended = run.ended.then(({ code }) => code)
  let held_kb = 0
  let code: number | null | undefined
  while (code === undefined) {
    held_kb = Math.max(held_kb, heldBy(run.pid) || 0)
    code = await Promise.race([ended, pause(look_ms, undefined)])
  }
  assert.equal(code, 0, outputOf(run))
  const carriers = Number(
    /([\d,]+) active carriers/.exec(run.printed.stdout)?.[1]?.replaceAll(",", ""),
  )
  return { took_ms: performance.now() - since, held_mb: held_kb / 1000, carriers }
}

/**
 * Kills `rounds` imports of files with `rows` dockets. `folder` must be empty; fails with the
 * differences. Returns the cost of the undisturbed import.
 */
export const killImports = async ({
  folder,
  seed,
  rows,
  rounds,
  onRound,
}: {
  readonly folder: string
  readonly seed: number
  readonly rows: number
  readonly rounds: number
  readonly onRound: (round: MirrorRound) => void
}): Promise<Undisturbed> => {
  const random = seeded(seed)
  const [quiet, troubled] = [join(folder, "quiet"), join(folder, "troubled")]
  const files = await writeFiles(join(folder, "files"), seed, rows, true)
  const undisturbed = await toEnd(quiet, files)
  const whole = contentOf(quiet)
  const { code, stderr } = await runVerb(troubled, ["carriers", "import", "--demo"])
  assert.equal(code, 0, stderr)
  const old = contentOf(troubled)
  copyFileSync(mirrorOf(troubled), join(folder, "old.sqlite"))
  for (let round = 0; round < rounds; round++) {
    // A leftover file of an earlier, longer import is larger than this import's own file.
    writeFileSync(`${mirrorOf(troubled)}.importing-old`, "left")
    copyFileSync(join(folder, "old.sqlite"), mirrorOf(troubled))
    const since = performance.now()
    const moment = random.next()
    const run = startVerb(troubled, ["carriers", "import", ...files])
    await pause(moment * undisturbed.took_ms)
    run.child.kill("SIGKILL")
    await run.ended
    const content = contentOf(troubled)
    assert.ok(content === old || content === whole, `seed ${seed}: the mirror is neither`)
    onRound({ moment, is_new: content === whole, took_ms: performance.now() - since })
  }
  await toEnd(troubled, files)
  assert.equal(contentOf(troubled), whole, `seed ${seed}`)
  const left = readdirSync(troubled).filter((name) => name.includes("importing"))
  assert.deepEqual(left, [], `seed ${seed}`)
  return undisturbed
}
