/**
 * What is known of a model's file, kept by its hash; found out by a process where it is not.
 *
 * An entry is a folder, which gets its name when it is whole: what a killed conversion leaves is
 * never taken for one. Source: issue 7, models read as users have them.
 */
import { randomUUID } from "node:crypto"
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Option, Schema } from "effect"
import { spawnGuarded } from "#processes"
import type { ModelFile } from "./model-file.ts"
import { type Answered, type Asked, Prepared } from "./prepared.ts"
import { refusal } from "./refusal.ts"

/** Rises with whatever is written otherwise: what older versions made is made anew. */
const conversion_version = 4
/** Models that are kept, the last used ones: a few in turn need no conversion. */
const entries_max = 4
/** A network of 2 GB takes a minute on a slow disk. */
const conversion_ms_max = 600_000
/** The file of an entry that ONNX Runtime opens. */
const onnx_name = "model.onnx"
const program = fileURLToPath(new URL("./conversion.ts", import.meta.url))

const Kept = Schema.Struct({ prepared: Prepared, onnx_bytes: Schema.NullOr(Schema.Int) })
const decodeKept = Schema.decodeUnknownOption(Schema.fromJsonString(Kept))

export interface Preparation {
  readonly prepared: Prepared
  readonly onnx_path: string
}

/** What a process finds out. Rejects with a refusal. */
const askedOf = (asked: Asked, signal: AbortSignal): Promise<Prepared> =>
  new Promise((resolve, reject) => {
    const child = spawnGuarded(process.execPath, [program], {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      killSignal: "SIGKILL",
      timeout: conversion_ms_max,
      signal,
    })
    child.once("error", (error) => reject(refusal(`The model was not read: ${error.message}.`)))
    child.once("message", (answered) => {
      // `conversion.ts` says nothing else.
      const told = answered as Answered
      if ("prepared" in told) resolve(told.prepared)
      else reject(refusal(told.detail))
    })
    child.once("exit", (code, killed) => {
      const how = killed === null ? `code ${code}` : killed
      reject(
        refusal(`Reading the model ended with ${how}: the file is damaged, or memory is short.`),
      )
    })
    child.send(asked)
  })

const found = async (folder: string, { format, path }: ModelFile) => {
  const text = await readFile(join(folder, "model.json"), "utf8").catch(() => "")
  const kept = Option.getOrUndefined(decodeKept(text))
  if (kept === undefined) return undefined
  const onnx_path = format === "onnx" ? path : join(folder, onnx_name)
  const size = await stat(onnx_path).then(
    (stats) => stats.size,
    () => -1,
  )
  if (kept.onnx_bytes !== null && kept.onnx_bytes !== size) return undefined
  return { prepared: kept.prepared, onnx_path }
}

/** Another process may have been faster with the same model; what is damaged gives way. */
const placed = async (folder: string, entry: string, file: ModelFile) => {
  try {
    await rename(folder, entry)
  } catch {
    if ((await found(entry, file)) !== undefined) return
    await rm(entry, { recursive: true, force: true })
    await rename(folder, entry)
  }
}

const made = async (file: ModelFile, folder: string, entry: string, signal: AbortSignal) => {
  const { path, format } = file
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    const onnx_path = join(folder, onnx_name)
    const prepared = await askedOf({ path, format, folder, onnx_path }, signal)
    const onnx_bytes = format === "onnx" ? null : (await stat(onnx_path)).size
    await rm(join(folder, "weights.h5"), { force: true })
    const kept = Schema.encodeSync(Schema.fromJsonString(Kept))({ prepared, onnx_bytes })
    await writeFile(join(folder, "model.json"), kept, { mode: 0o600 })
    await placed(folder, entry, file)
  } finally {
    // A process that is being killed may still write there.
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Lets go what was not used for longest, and what killed conversions left. */
const pruned = async (cache_dir: string, used: string) => {
  const aged = await Promise.all(
    (await readdir(cache_dir)).map(async (name) => {
      const stats = await stat(join(cache_dir, name)).catch(() => undefined)
      return { name, used_at: stats?.mtimeMs ?? 0 }
    }),
  )
  const is_entry = ({ name }: { readonly name: string }) => /^[0-9a-f]{64}-v\d+$/.test(name)
  const entries = aged.filter(is_entry).sort((one, other) => other.used_at - one.used_at)
  const left = aged.filter(
    ({ name, used_at }) =>
      name.startsWith("making-") && Date.now() - used_at > 2 * conversion_ms_max,
  )
  for (const { name } of [...entries.slice(entries_max), ...left]) {
    if (name === used) continue
    await rm(join(cache_dir, name), { recursive: true, force: true }).catch(() => undefined)
  }
}

/** The model's ONNX file and what is known of it. Rejects with a refusal. */
export const preparation = async (
  file: ModelFile,
  cache_dir: string,
  signal: AbortSignal,
): Promise<Preparation> => {
  const name = `${file.sha256}-v${conversion_version}`
  const entry = join(cache_dir, name)
  await mkdir(cache_dir, { recursive: true, mode: 0o700 })
  const known = await found(entry, file)
  if (known === undefined) {
    await made(file, join(cache_dir, `making-${randomUUID()}`), entry, signal)
  }
  const now = new Date()
  await utimes(entry, now, now)
  await pruned(cache_dir, name)
  const prepared = known ?? (await found(entry, file))
  if (prepared === undefined) throw refusal("The converted model is not where it was written.")
  return prepared
}
