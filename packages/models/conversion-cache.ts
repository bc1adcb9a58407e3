/**
 * A cache of converted models, by the SHA-256 of their files. A child process does the conversion.
 *
 * An entry is a folder that is renamed into place once it is complete, so a killed conversion never
 * leaves an entry. Source: issue 7, models read as users have them.
 */
import { randomUUID } from "node:crypto"
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Option, Schema } from "effect"
import { spawnGuarded } from "#processes"
import { modelError } from "./model-error.ts"
import type { ModelFile } from "./model-file.ts"
import { type ConversionRequest, type ConversionResponse, PreparedModel } from "./prepared-model.ts"

/** Increased whenever the output changes, so that older entries are converted again. */
const conversion_version = 4
/** The most recently used entries are kept, for operators who switch between a few models. */
const entries_max = 4
/** A model of 2 GB takes a minute on a slow disk. */
const conversion_ms_max = 600_000
/** The entry's file for ONNX Runtime. */
const onnx_name = "model.onnx"
const program = fileURLToPath(new URL("./conversion.ts", import.meta.url))

const Entry = Schema.Struct({ prepared: PreparedModel, onnx_bytes: Schema.NullOr(Schema.Int) })
const decodeEntry = Schema.decodeUnknownOption(Schema.fromJsonString(Entry))

export interface CachedConversion {
  readonly prepared: PreparedModel
  readonly onnx_path: string
}

/** Converts a model in a child process. Rejects with a ModelError. */
const runConversion = (request: ConversionRequest, signal: AbortSignal): Promise<PreparedModel> =>
  new Promise((resolve, reject) => {
    const child = spawnGuarded(process.execPath, [program], {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      killSignal: "SIGKILL",
      timeout: conversion_ms_max,
      signal,
    })
    child.once("error", (error) =>
      reject(modelError(`The model could not be read: ${error.message}.`)),
    )
    child.once("message", (message) => {
      // `conversion.ts` sends nothing else.
      const response = message as ConversionResponse
      if ("prepared" in response) resolve(response.prepared)
      else reject(modelError(response.detail))
    })
    child.once("exit", (code, signal_name) => {
      const cause = signal_name === null ? `code ${code}` : signal_name
      reject(
        modelError(
          `Reading the model ended with ${cause}: the file is damaged or memory is short.`,
        ),
      )
    })
    child.send(request)
  })

const readEntry = async (folder: string, { format, path }: ModelFile) => {
  const text = await readFile(join(folder, "model.json"), "utf8").catch(() => "")
  const kept = Option.getOrUndefined(decodeEntry(text))
  if (kept === undefined) return undefined
  const onnx_path = format === "onnx" ? path : join(folder, onnx_name)
  const size = await stat(onnx_path).then(
    (stats) => stats.size,
    () => -1,
  )
  if (kept.onnx_bytes !== null && kept.onnx_bytes !== size) return undefined
  return { prepared: kept.prepared, onnx_path }
}

/** Keeps an entry that another process has published in the meantime; replaces a damaged one. */
const publishEntry = async (folder: string, entry: string, file: ModelFile) => {
  try {
    await rename(folder, entry)
  } catch {
    if ((await readEntry(entry, file)) !== undefined) return
    await rm(entry, { recursive: true, force: true })
    await rename(folder, entry)
  }
}

const createEntry = async (file: ModelFile, folder: string, entry: string, signal: AbortSignal) => {
  const { path, format } = file
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    const onnx_path = join(folder, onnx_name)
    const prepared = await runConversion({ path, format, folder, onnx_path }, signal)
    const onnx_bytes = format === "onnx" ? null : (await stat(onnx_path)).size
    await rm(join(folder, "weights.h5"), { force: true })
    const kept = Schema.encodeSync(Schema.fromJsonString(Entry))({ prepared, onnx_bytes })
    await writeFile(join(folder, "model.json"), kept, { mode: 0o600 })
    await publishEntry(folder, entry, file)
  } finally {
    // A child that is being killed may still be writing.
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Removes the least recently used entries and folders left by killed conversions. */
const prune = async (cache_dir: string, used: string) => {
  const by_age = await Promise.all(
    (await readdir(cache_dir)).map(async (name) => {
      const stats = await stat(join(cache_dir, name)).catch(() => undefined)
      return { name, used_at: stats?.mtimeMs ?? 0 }
    }),
  )
  const is_entry = ({ name }: { readonly name: string }) => /^[0-9a-f]{64}-v\d+$/.test(name)
  const entries = by_age.filter(is_entry).sort((one, other) => other.used_at - one.used_at)
  const abandoned = by_age.filter(
    ({ name, used_at }) =>
      name.startsWith("making-") && Date.now() - used_at > 2 * conversion_ms_max,
  )
  for (const { name } of [...entries.slice(entries_max), ...abandoned]) {
    if (name === used) continue
    await rm(join(cache_dir, name), { recursive: true, force: true }).catch(() => undefined)
  }
}

/** Returns the cached conversion, or converts the model. Rejects with a ModelError. */
export const cachedConversion = async (
  file: ModelFile,
  cache_dir: string,
  signal: AbortSignal,
): Promise<CachedConversion> => {
  const name = `${file.sha256}-v${conversion_version}`
  const entry = join(cache_dir, name)
  await mkdir(cache_dir, { recursive: true, mode: 0o700 })
  const cached = await readEntry(entry, file)
  if (cached === undefined) {
    await createEntry(file, join(cache_dir, `making-${randomUUID()}`), entry, signal)
  }
  const now = new Date()
  await utimes(entry, now, now)
  await prune(cache_dir, name)
  const prepared = cached ?? (await readEntry(entry, file))
  if (prepared === undefined)
    throw modelError("The converted model has disappeared from the cache.")
  return prepared
}
