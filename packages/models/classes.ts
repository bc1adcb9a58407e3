/**
 * The names of a network's classes by the index of its output, in each form that they are met in:
 * `{"0": "Apple___healthy"}`, `{"Apple___healthy": 0}`, an array, and a text of one name a line.
 *
 * Names pass through as they are. Source: plant facts 1; decisions of document 3, plant model.
 */
import { existsSync } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { basename, dirname, extname, join } from "node:path"
import { isRecord } from "./keras/config.ts"
import { unusable } from "./refusal.ts"

/** Ten thousand classes with names of a hundred characters. */
const file_bytes_max = 2 ** 20
const classes_max = 10_000

const refuse = (detail: string) => unusable(`The class file ${detail}.`)

const fromPairs = (pairs: ReadonlyArray<readonly [number, string]>): ReadonlyArray<string> => {
  const names = new Map<number, string>()
  for (const [index, name] of pairs) {
    if (names.has(index)) return refuse(`has two classes of the index ${index}`)
    names.set(index, name)
  }
  return Array.from({ length: pairs.length }, (_, index) => {
    return names.get(index) ?? refuse(`has ${pairs.length} classes, and none of the index ${index}`)
  })
}

const fromRecord = (json: Readonly<Record<string, unknown>>): ReadonlyArray<string> => {
  const entries = Object.entries(json)
  const by_index = entries.flatMap(([key, name]) =>
    /^(0|[1-9]\d{0,8})$/.test(key) && typeof name === "string"
      ? [[Number(key), name] as const]
      : [],
  )
  if (by_index.length === entries.length) return fromPairs(by_index)
  const by_name = entries.flatMap(([name, index]) =>
    typeof index === "number" && Number.isSafeInteger(index) && index >= 0
      ? [[index, name] as const]
      : [],
  )
  if (by_name.length === entries.length) return fromPairs(by_name)
  return refuse('maps neither indices to names ({"0": "..."}) nor names to indices ({"...": 0})')
}

const fromJson = (text: string): ReadonlyArray<string> => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return refuse("is no valid JSON")
  }
  if (Array.isArray(json)) {
    return json.every((name) => typeof name === "string") ? json : refuse("lists what is no name")
  }
  return isRecord(json) ? fromRecord(json) : refuse("holds neither an object nor a list")
}

const fromLines = (text: string) => {
  const lines = text.split(/\r?\n/)
  while (lines.at(-1)?.trim() === "") lines.pop()
  return lines
}

/** The names in a class file's text. Throws a refusal. */
export const parseClasses = (text: string, form: "json" | "text" = "json") => {
  const bare = text.replace(/^\uFEFF/, "")
  const names = form === "json" ? fromJson(bare) : fromLines(bare)
  if (names.length === 0) return refuse("is empty")
  if (names.length > classes_max) return refuse(`has more than ${classes_max} classes`)
  if (names.some((name) => name.trim() === "")) return refuse("has a class without a name")
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) return refuse(`has ${JSON.stringify(twice)} twice`)
  return names
}

/** The class file beside a model: `<model>.classes.json`, or `class_indices.json`. */
export const classesBeside = (model_path: string): string => {
  const folder = dirname(model_path)
  const own = join(folder, `${basename(model_path, extname(model_path))}.classes.json`)
  return existsSync(own) ? own : join(folder, "class_indices.json")
}

/** Reads a class file; an empty path is the one beside the model. Throws a refusal. */
export const readClasses = async (
  path: string,
  model_path: string,
): Promise<ReadonlyArray<string>> => {
  const chosen = path === "" ? classesBeside(model_path) : path
  const found = await stat(chosen).catch(() => undefined)
  if (found === undefined) {
    const advice = path === "" ? ": put it beside the model, or set plant.classes" : ""
    return refuse(`${chosen} is not there${advice}`)
  }
  if (!found.isFile()) return refuse(`${chosen} is no file`)
  if (found.size > file_bytes_max) return refuse(`${chosen} has more than 1 MB`)
  const text = await readFile(chosen, "utf8").catch(() => refuse(`${chosen} cannot be read`))
  return parseClasses(text, extname(chosen).toLowerCase() === ".txt" ? "text" : "json")
}

/** Throws where a network has another number of outputs. */
export const checkClasses = (names: ReadonlyArray<string>, outputs: number) => {
  if (names.length !== outputs) {
    refuse(`has ${names.length} classes, and the network has ${outputs} outputs`)
  }
}
