/** One bootstrap at a time in a checkout. The lock of a process that died is taken over. */
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
/** A cold npm cache on a slow line takes minutes; a bootstrap that takes longer hangs. */
const wait_max_ms = 15 * 60_000
/** Taking over a dead lock takes well under a millisecond, so an older claim is dead as well. */
const claim_max_ms = 10_000

const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/** Tells a process from a later one with the same id; empty where there is no /proc. */
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

/** The file appears with its content in one step, so that nobody reads a lock without an owner. */
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

/** Only the holder of the claim removes a dead lock, after it looked again. */
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

/** Runs `work` while holding the lock; waits for another holder, at most 15 minutes. */
export const withLock = (path, work, say = () => undefined) => {
  mkdirSync(dirname(path), { recursive: true })
  const deadline = Date.now() + wait_max_ms
  let told = false
  while (!create(path)) {
    const owner = read(path)
    if (owner !== undefined && !isAlive(owner)) {
      removeDead(path)
      continue
    }
    if (!told) say("waiting for another start in this checkout to finish its installation")
    told = true
    if (Date.now() > deadline) {
      throw new Error(`process ${owner} holds ${path}: end it or delete the file`)
    }
    sleep(poll_ms)
  }
  try {
    return work()
  } finally {
    rmSync(path, { force: true })
  }
}
