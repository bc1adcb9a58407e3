/** Limits a checkout to one bootstrap at a time. The lock of a dead process is taken over. */
import {
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { dirname } from "node:path"

const poll_ms = 100
/** With a cold npm cache, a slow connection takes minutes; a slower bootstrap is stuck. */
const wait_max_ms = 15 * 60_000
/**
 * Removing a dead lock takes less than a millisecond, so the process of an older claim is dead too.
 */
const claim_max_ms = 10_000

const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/**
 * Start time of a process, which distinguishes it from a later one with its id; empty without
 * /proc.
 */
const startOf = (pid) => {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop().split(" ")[19]
  } catch {
    return ""
  }
}

const isAlive = (owner) => {
  const [pid, start] = owner.split(" ")
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    return error.code === "EPERM"
  }
  return startOf(pid) === start
}

const read = (path) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/**
 * Creates the file with its content in one step, so that no process reads a lock without an owner.
 */
const create = (path) => {
  const scratch = `${path}.${process.pid}`
  writeFileSync(scratch, `${process.pid} ${startOf(process.pid)}`)
  try {
    linkSync(scratch, path)
    return true
  } catch (error) {
    if (error.code === "EEXIST") return false
    throw error
  } finally {
    rmSync(scratch)
  }
}

/** Removes a dead lock. Only the holder of the claim does that, after checking the lock again. */
const removeDead = (path) => {
  const claim = `${path}.claim`
  const claimed_at = statSync(claim, { throwIfNoEntry: false })?.mtimeMs
  if (claimed_at !== undefined && Date.now() - claimed_at > claim_max_ms) {
    renameSync(claim, `${claim}.${process.pid}`)
    rmSync(`${claim}.${process.pid}`)
  }
  if (!create(claim)) return
  const owner = read(path)
  if (owner !== undefined && !isAlive(owner)) rmSync(path)
  rmSync(claim)
}

/** Runs `work` while holding the lock; waits up to 15 minutes for another holder. */
export const withLock = async (path, work, say = () => undefined) => {
  mkdirSync(dirname(path), { recursive: true })
  const deadline = Date.now() + wait_max_ms
  let is_announced = false
  while (!create(path)) {
    const owner = read(path)
    if (owner !== undefined && !isAlive(owner)) {
      removeDead(path)
      continue
    }
    if (!is_announced) say("waiting for another start in this checkout to finish its installation")
    is_announced = true
    if (Date.now() > deadline) {
      throw new Error(
        `process ${owner?.split(" ")[0]} has held ${path} for 15 minutes: ` +
          "stop that process or delete the file, and run this again",
      )
    }
    sleep(poll_ms)
  }
  try {
    return await work()
  } finally {
    rmSync(path, { force: true })
  }
}
