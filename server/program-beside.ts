/** Entry files of the processes and threads that this process starts. */
import { basename, join } from "node:path"

/**
 * The entry file at `path` in this folder. From the bundle it is the bundled one, because the bundle
 * has all entry files in one folder.
 */
export const programBeside = (path: string) =>
  import.meta.filename.endsWith(".ts")
    ? join(import.meta.dirname, `${path}.ts`)
    : join(import.meta.filename, `../${basename(path)}.js`)
