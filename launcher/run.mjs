/** `node launcher/run.mjs <command>`: runs the program, from its bundle if there is one. */
import { pathToFileURL } from "node:url"
import { programOf } from "./bundle.mjs"
import "./compile-cache.mjs"

await import(pathToFileURL(programOf("main.ts")).href)
