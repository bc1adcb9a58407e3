/** Entry files of the processes and threads that this process starts. */
import { basename, join } from "node:path"

/**
 * The entry file at `path` in this folder. From the bundle it is the bundled one: all entry files
 * are in one folder there.
 */
export const programBeside = (path: string) =>
  import.meta.filename.endsWith(".ts")
    ? join(import.meta.dirname, `${path}.ts`)
    : join(import.meta.filename, `../${basename(path)}.js`)
