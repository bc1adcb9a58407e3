/**
 * Decodes small ordinary JPEGs in the thread that asks: libjpeg-turbo as WebAssembly, where sharp
 * would set up a pipeline and change threads twice for them. The pixels are the same.
 *
 * It says nothing of what is wrong: of what it does not take, sharp is asked. Decision 0101.
 */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { JpegHead } from "#adapters/plant-image-head.ts"

/** 512 by 512. Above it sharp's native code makes good what its threads cost. */
export const quick_pixels_max = 2 ** 18
/** Four bytes for each such pixel: even the best quality needs less. */
export const quick_bytes_max = 2 ** 20
/** RGB. Source: libjpeg-turbo, turbojpeg.h, TJPF. */
const rgb_format = 0
const colours = 3
/** Width, height, subsampling and colour space: four i32. */
const head_bytes = 16

/** What the package's file exports, as turbojpeg.h has it; addresses and sizes in bytes. */
interface Turbo {
  readonly memory: WebAssembly.Memory
  readonly malloc: (bytes: number) => number
  readonly tjInitDecompress: () => number
  readonly tjDecompressHeader3: (...args: ReadonlyArray<number>) => number
  readonly tjDecompress2: (...args: ReadonlyArray<number>) => number
}

const nothing = () => 0
/** Where the library leaves off in the midst of a call. */
const left = () => {
  throw new Error("The file is damaged.")
}
const system = ["environ_sizes_get", "environ_get", "fd_close", "fd_seek", "fd_write"]
const imports = {
  env: { setjmp: nothing, longjmp: left },
  wasi_snapshot_preview1: {
    ...Object.fromEntries(system.map((name) => [name, nothing])),
    proc_exit: left,
  },
}

const decoder = (module: WebAssembly.Module) => {
  // The package's file exports these.
  const turbo = new WebAssembly.Instance(module, imports).exports as unknown as Turbo
  const file = turbo.malloc(quick_bytes_max)
  const pixels = turbo.malloc(quick_pixels_max * colours)
  const head = turbo.malloc(head_bytes)
  const handle = turbo.tjInitDecompress()

  /** Throws of whatever it would warn of; it is of no use then. */
  return (bytes: Uint8Array, { width, height }: JpegHead): Uint8Array => {
    new Uint8Array(turbo.memory.buffer, file, bytes.length).set(bytes)
    const given = [handle, file, bytes.length] as const
    const is_read = turbo.tjDecompressHeader3(...given, head, head + 4, head + 8, head + 12) === 0
    const [across, down] = new Int32Array(turbo.memory.buffer, head, 2)
    if (!is_read || across !== width || down !== height) return left()
    const stride = width * colours
    const failed = turbo.tjDecompress2(...given, pixels, width, stride, height, rgb_format, 0)
    if (failed !== 0) return left()
    return new Uint8Array(turbo.memory.buffer, pixels, height * stride)
  }
}

/**
 * A decoder for one thread: RGB pixels, its own until it is asked again; undefined of what is
 * large, not plain or not sound.
 */
export const quickJpeg = (): ((bytes: Uint8Array, head: JpegHead) => Uint8Array | undefined) => {
  const path = createRequire(import.meta.url).resolve("@cwasm/jpeg-turbo/jpeg-turbo.wasm")
  const module = new WebAssembly.Module(readFileSync(path))
  let decode = decoder(module)
  return (bytes, head) => {
    const is_small = head.width * head.height <= quick_pixels_max
    if (!head.is_plain || !is_small || bytes.length > quick_bytes_max) return undefined
    try {
      return decode(bytes, head)
    } catch {
      // What a damaged file left behind in its memory goes with it.
      decode = decoder(module)
      return undefined
    }
  }
}
