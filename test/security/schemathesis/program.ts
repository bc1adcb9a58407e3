/** schemathesis, a Python program that tests an HTTP API against its OpenAPI document. */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { findTree, treeEnvironment, trees } from "../../../launcher/trees.mjs"

/** Debian's own Python, which matches the packages: another version may come first in PATH. */
const python = "/usr/bin/python3"

/** The program, and the libraries that determine which requests a seed generates. */
const requirements = ["schemathesis==4.32.5", "hypothesis==6.170.17", "jsonschema-rs==0.60.3"]

const install_ms_max = 240_000
const output_chars_max = 6_000
/** For one round on a busy machine, and for writing the report. */
const spare_ms = 300_000

const environment = () => ({ ...process.env, ...treeEnvironment(findTree("pip") ?? "/") })

/** Runs Python; returns the exit code and the end of the output. */
const run = async (args: ReadonlyArray<string>, cwd: string, ms_max: number, env: object) => {
  const child = spawn(python, args, {
    cwd,
    env: { ...environment(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: ms_max,
  })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-output_chars_max)
    })
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", resolve)
  })
  return { code, output }
}

const packagesIn = (folder: string) => join(folder, "packages")

/**
 * Installs the program into the folder. It needs pip alone: Debian packages what a virtual
 * environment needs separately. Fails with pip's error.
 */
export const install = async (folder: string) => {
  const options = ["--quiet", "--only-binary", ":all:", "--no-compile"]
  const target = ["--target", packagesIn(folder)]
  const args = ["-m", "pip", "install", ...options, ...target, ...requirements]
  const { code, output } = await run(args, folder, install_ms_max, {})
  if (code !== 0) throw new Error(`pip cannot install ${requirements[0]}:\n${output}`)
}

/** Why schemathesis cannot be installed on this machine; undefined if it can. */
export const missingPip = () =>
  findTree("pip") === undefined
    ? `pip is needed for schemathesis: ${trees.pip.install_command}`
    : undefined

/** The checks, and the statuses of failures that the API's contract allows. */
const configuration = `
[checks]
enabled = false
[checks.not_a_server_error]
enabled = true
expected-statuses = ["2xx", "3xx", "4xx", 501, 502, 503]
[checks.status_code_conformance]
enabled = true
[checks.content_type_conformance]
enabled = true
[checks.response_schema_conformance]
enabled = true
`

export interface Plan {
  readonly url: string
  readonly node_id: string
  /** Values of fields that refer to something that exists. */
  readonly known: Readonly<Record<string, string>>
  readonly seed: number
  /** Maximum number of generated requests per operation. */
  readonly examples: number
  /**
   * Repeats until they have passed, after the boundary values of every field. Without them, the
   * seed determines every request.
   */
  readonly seconds?: number
}

/** Runs schemathesis, which is installed in the folder. Returns its report and its output. */
export const runSchemathesis = async (folder: string, plan: Plan) => {
  const config = join(folder, "schemathesis.toml")
  writeFileSync(config, configuration)
  const report = join(folder, "report.ndjson")
  const args = [
    ...["-m", "schemathesis.cli", "--no-color", "--config-file", config, "run"],
    `${plan.url}/openapi.json`,
    ...["--seed", String(plan.seed), "--max-examples", String(plan.examples)],
    ...(plan.seconds === undefined
      ? ["--phases", "examples,fuzzing"]
      : ["--phases", "examples,coverage,fuzzing", "--max-time", String(plan.seconds)]),
    // An event stream does not end.
    ...["--exclude-path", "/v1/events", "--continue-on-failure"],
    // Every caller is permitted, and a malformed token is 401.
    ...["--generation-with-security-parameters", "false"],
    ...["--generation-database", "none", "--warnings", "off"],
    // They depend on the speed of the machine, and on patterns that few texts match.
    ...["--suppress-health-check", "all"],
    ...["--report", "ndjson", "--report-ndjson-path", report],
  ]
  const ms_max = (plan.seconds ?? 0) * 1000 + spare_ms
  const { code, output } = await run(args, folder, ms_max, {
    PYTHONPATH: packagesIn(folder),
    SCHEMATHESIS_HOOKS: join(import.meta.dirname, "hooks.py"),
    ALMANAC_OWN_NODE: plan.node_id,
    ALMANAC_KNOWN: JSON.stringify(plan.known),
  })
  // 1: a check failed, which the report says.
  if (code !== 0 && code !== 1) throw new Error(`schemathesis ended with ${code}:\n${output}`)
  return { report, output }
}
