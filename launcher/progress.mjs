/**
 * Messages of the launcher on standard error, and the progress of long tasks: one line that updates
 * on a terminal, otherwise a new line every ten seconds.
 */
import { lstatSync, readdirSync } from "node:fs"
import { join } from "node:path"

const terminal_ms = 1_000
const plain_ms = 10_000
const clear_line = "\r\u001b[K"

const is_terminal = process.stderr.isTTY === true

/** Running tasks: each label with a function that returns its progress. */
const tasks = new Map()
let timer

const write = (line, end) =>
  process.stderr.write(`${is_terminal ? clear_line : ""}almanac: ${line}${end}`)

export const say = (line) => write(line, "\n")

const draw = () => {
  const parts = [...tasks].map(([label, progress]) => `${label}: ${progress()}`)
  write(parts.join("; "), is_terminal ? "" : "\n")
}

const megabytes = (bytes) => Math.round(bytes / 1e6)

/** Size of the files below a folder. Files that disappear while it reads count as nothing. */
export const folderSize = (folder) => {
  try {
    const sizes = readdirSync(folder, { withFileTypes: true }).map((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return folderSize(path)
      return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0
    })
    return sizes.reduce((sum, size) => sum + size, 0)
  } catch {
    return 0
  }
}

/**
 * Runs `work` and shows its progress: the megabytes that `bytes` returns, of `total` if that is
 * given, and the seconds since it began.
 */
export const withProgress = async (label, work, { bytes, total } = {}) => {
  const since = performance.now()
  tasks.set(label, () => {
    const seconds = `${Math.round((performance.now() - since) / 1000)} s`
    if (bytes === undefined) return seconds
    const done = megabytes(bytes())
    return `${done}${total > done ? ` of about ${total}` : ""} MB, ${seconds}`
  })
  timer ??= setInterval(draw, is_terminal ? terminal_ms : plain_ms)
  try {
    return await work()
  } finally {
    tasks.delete(label)
    if (tasks.size === 0) {
      clearInterval(timer)
      timer = undefined
      if (is_terminal) process.stderr.write(clear_line)
    }
  }
}
