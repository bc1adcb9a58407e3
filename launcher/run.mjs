/** `node launcher/run.mjs <verb>`: the program, in the form that starts fastest here. */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { programOf } from "./bundle.mjs"
import { root } from "./cache.mjs"
import "./compile-cache.mjs"
import { endsSoon } from "./node-flags.mjs"

const [, , verb = ""] = process.argv
// A name that was mistyped fails and leaves no file; after a flag it may be `serve` that comes.
const is_verb = /^[a-z][a-z-]*$/.test(verb)
// Most nouns of the API have no file of their own, and nearly all of their code in common.
const commands = join(root, "cli")
const hasFile = (folder) => existsSync(join(commands, folder, `${verb}.ts`))
const name =
  is_verb && existsSync(commands) && readdirSync(commands).some(hasFile) ? verb : "client"
const program = programOf("main.ts", is_verb && endsSoon(verb) ? "cjs" : "js")
if (program.endsWith(".cjs")) {
  const { runCompiled } = await import("./compiled.mjs")
  runCompiled(program, name)
} else await import(pathToFileURL(program).href)
