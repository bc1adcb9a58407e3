/** Programs of processes and threads that this one starts. */
import { join } from "node:path"

/**
 * The file of a program of this folder, in the form that this file has: the bundle's where it is in
 * the bundle, which has all of them beside each other.
 */
export const programBeside = (name: string) =>
  import.meta.filename.endsWith(".ts")
    ? join(import.meta.dirname, `${name}.ts`)
    : join(import.meta.filename, `../${name}.js`)
