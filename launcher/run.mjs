/** `node launcher/run.mjs <verb>`: the program, in the form that starts fastest here. */
import { pathToFileURL } from "node:url"
import { programOf } from "./bundle.mjs"
import "./compile-cache.mjs"

await import(pathToFileURL(programOf("main.ts")).href)
