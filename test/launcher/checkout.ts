/** A checkout with only the launcher, and stand-ins for npm, apt and the external programs. */
import { spawn } from "node:child_process"
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { onTestFinished } from "vitest"

const launcher = join(dirname(dirname(import.meta.dirname)), "launcher")

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A folder that is deleted after the test. */
export const makeFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), "almanac-launcher-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export const writeProgram = (path: string, script: string) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
}

/** A program that prints its version, and adds a line to `<path>.asked` on each run. */
export const writeVersioned = (path: string, version: string) =>
  writeProgram(path, `echo asked >> "$0.asked"; echo "stand-in v${version}"`)

const packages = (version: string) => ({ "node_modules/a": { version } })

/** The result of an npm install: its own record, the package, and Node. */
const installs = (version: string) => `
mkdir -p node_modules/a node_modules/node-linux-${process.arch}/bin
ln -sf "${process.execPath}" node_modules/node-linux-${process.arch}/bin/node
echo '${JSON.stringify({ packages: packages(version) })}' > node_modules/.package-lock.json`

/** Writes a lockfile that requires this version of the only package. */
export const lock = (root: string, version: string) =>
  writeFileSync(
    join(root, "package-lock.json"),
    JSON.stringify({ packages: { "": {}, ...packages(version) } }),
  )

/**
 * `bin` is the whole PATH: npm installs 1.0.0 and runs the shell commands of `more`, and records
 * that it ran; nats-server and restic are recent. Nothing is installed, and the cache is empty.
 */
export const makeCheckout = (more: (root: string) => string = () => "") => {
  const root = makeFolder()
  const bin = join(root, "bin")
  cpSync(launcher, join(root, "launcher"), { recursive: true })
  lock(root, "1.0.0")
  writeProgram(
    join(bin, "npm"),
    `echo "$@" >> ${root}/npm-ran; sleep 0.2; ${installs("1.0.0")}\n${more(root)}`,
  )
  writeVersioned(join(bin, "nats-server"), "2.15.1")
  writeVersioned(join(bin, "restic"), "0.19.1")
  for (const name of ["sh", "sleep", "mkdir", "ln", "env"]) {
    symlinkSync(`/bin/${name}`, join(bin, name))
  }
  const environment = { PATH: bin, HOME: root, ALMANAC_CACHE_DIR: join(root, "cache") }
  return { root, bin, environment }
}

/** Runs Node on a file of the checkout until it exits. */
export const runNode = (
  { root, environment }: Pick<ReturnType<typeof makeCheckout>, "root" | "environment">,
  args: ReadonlyArray<string>,
  more: Readonly<Record<string, string>> = {},
) => {
  const child = spawn(process.execPath, args, { cwd: root, env: { ...environment, ...more } })
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  const ended = new Promise<Ended>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  return { child, ended, printed: () => stdout }
}
