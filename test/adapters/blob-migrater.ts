/**
 * Migrates a store of plain files in a process of its own and kills itself before a step, or after
 * so many blobs. Its "log" is a file of facts beside the store. Run by blob-migration.services.ts.
 */
import { existsSync, readFileSync } from "node:fs"
import { appendFile } from "node:fs/promises"
import { join } from "node:path"
import {
  migrate,
  migrationState,
  migrationVolume,
  removePlain,
} from "#adapters/blob-storage/plain/migration.ts"
import { openPlain, type PlainStore } from "#adapters/blob-storage/plain/plain.ts"
import { openVolume } from "#volume"

const [dir = "", kill_at = "", kill_blobs = "0"] = process.argv.slice(2)

const die = () => process.kill(process.pid, "SIGKILL")
const step = (name: string) => {
  if (name === kill_at) die()
}

const log = join(dir, "facts")

/** As the journal's process: only facts that follow those that are there, then acknowledged. */
const record = async (plain: PlainStore) => {
  const lines = existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []
  let cursor = Number((lines.at(-1) ?? "0").split(" ")[0])
  for (let facts = plain.scan(cursor, 10); facts.length > 0; facts = plain.scan(cursor, 10)) {
    const text = facts.map(({ cursor, kind, id }) => `${cursor} ${kind} ${id}\n`).join("")
    await appendFile(log, text, { flush: true })
    cursor = facts.at(-1)?.cursor ?? cursor
    step("recorded")
    plain.acknowledge(cursor)
  }
}

if (migrationState(dir) === "plain") {
  const plain = openPlain(dir)
  await migrate(plain, {
    dir,
    open: (folder) => openVolume(migrationVolume(folder, 8 * 1024 ** 2, plain.cursor())),
    record: () => record(plain),
    now: () => BigInt(Date.now()) * 1_000_000n,
    done: (count) => {
      if (count === Number(kill_blobs)) die()
    },
    step,
  })
  plain.close()
}
if (migrationState(dir) === "done") await removePlain(dir, openPlain, step)
