/**
 * Decodes small ordinary JPEGs in the thread that asks, where sharp would set up a pipeline and
 * change threads twice for them. The pixels are the same.
 *
 * Whatever is not plain, or not sound to the last bit, is sharp's to judge. Decision 0101.
 */
import type { JpegHead } from "../images/head.ts"
import { type Bits, block_bytes_max, block_numbers, natural, readBlock } from "./codes.ts"
import { jpegFile, keptCodes, unmarked } from "./file.ts"
import { block_side, jpegProgram, middle_sample, pixels_at_once } from "./module.ts"
import { type Layout, layoutOf, type Plane } from "./plane.ts"

/** 512 by 512. Above it sharp's native code makes good what its threads cost. */
export const quick_pixels_max = 2 ** 18
/** Four bytes for each such pixel: even the best quality needs less. */
export const quick_bytes_max = 2 ** 20
/** Colour of fewer columns is not made smooth. Source: libjpeg-turbo, jdsample.c. */
const smooth_width_min = 3
/** Four for each way of encoding: files of a few senders. */
const codes_max = 32
/** Eight times what an encoder makes: beyond it libjpeg-turbo's own code and vectors differ. */
const level_max = 8191
/** Where a block's first row is among its codes. */
const row_places = Array.from({ length: block_side }, (_, place) => natural.indexOf(place))
const colours = 3
const page_bytes = 65_536
/** What 512 by 512 pixels take that have as much colour as light; odd shapes may take more. */
const memory_bytes = 5 * 2 ** 20

/** Whether none of the first row beyond its first number is larger, as `level` may not be. */
const isModest = (numbers: Int16Array, at: number, factors: ReadonlyArray<number>) => {
  for (let n = 1; n < block_side; n++) {
    if (Math.abs((numbers[at + n] ?? 0) * (factors[n] ?? 0)) > level_max) return false
  }
  return true
}

/** Reads all blocks' numbers; answers whether they are all that there is. */
const numbersRead = (
  { planes, units, numbers_bytes }: Layout,
  numbers: Int16Array,
  bits: Bits,
  length: number,
): boolean => {
  const [units_across, units_down] = units
  const levels = planes.map(() => 0)
  const row_factors = planes.map(({ component: { factors } }) =>
    row_places.map((place) => factors[place] ?? 0),
  )
  numbers.fill(0, 0, numbers_bytes / numbers.BYTES_PER_ELEMENT)
  for (let unit = 0; unit < units_across * units_down; unit++) {
    const x = unit % units_across
    const y = (unit - x) / units_across
    for (let n = 0; n < planes.length; n++) {
      const plane = planes[n]
      if (plane === undefined) return false
      const { across, down, first, others } = plane.component
      const factors = row_factors[n] ?? []
      const [factor = 0] = factors
      const from = plane.numbers_at / numbers.BYTES_PER_ELEMENT
      for (let part = 0; part < across * down; part++) {
        const column = x * across + (part % across)
        const row = y * down + Math.floor(part / across)
        const to = from + (row * plane.blocks + column) * block_numbers
        const level = readBlock(bits, first, others, numbers, to, levels[n] ?? 0)
        // Not a number either, where the bits are no block.
        const is_sound = Math.abs(level * factor) <= level_max && isModest(numbers, to, factors)
        if (!is_sound || bits.at > length * 8) return false
        levels[n] = level
      }
    }
  }
  return Math.ceil(bits.at / 8) === length
}

/** Makes pixels of numbers, in a memory of its own. */
const painter = () => {
  const memory = new WebAssembly.Memory({ initial: Math.ceil(memory_bytes / page_bytes) })
  const program = jpegProgram(memory)
  const bytes = new Uint8Array(memory.buffer)
  const numbers = new Int16Array(memory.buffer)

  const fillPlane = ({ component, blocks, rows, ...plane }: Plane) => {
    const { numbers_at, factors_at, pixels_at, stride, width, height } = plane
    for (const [n, place] of natural.entries()) {
      numbers[factors_at / numbers.BYTES_PER_ELEMENT + place] = component.factors[n] ?? 0
    }
    for (let row = 0; row < rows; row++) {
      const from = numbers_at + row * blocks * block_numbers * numbers.BYTES_PER_ELEMENT
      program.transform(from, factors_at, pixels_at + row * block_side * stride, stride, blocks)
    }
    // Beyond the edges the pixels on them go on.
    for (let at = pixels_at; at < pixels_at + height * stride; at += stride) {
      bytes[at - 1] = bytes[at] ?? 0
      bytes[at + width] = bytes[at + width - 1] ?? 0
    }
  }

  /** Where a row of colour is, as wide as the image: made at `target` if it has to be. */
  const colourRow = (plane: Plane, light: Plane, y: number, target: number): number => {
    const { pixels_at, stride, height, width } = plane
    const at = (row: number) => pixels_at + Math.min(Math.max(row, 0), height - 1) * stride
    if (light.component.across === 1) return at(y)
    const is_tall = light.component.down === 2
    const near = is_tall ? y >> 1 : y
    const far = is_tall ? near + (y % 2 === 0 ? -1 : 1) : near
    const [even, odd] = is_tall ? [8, 7] : [4, 8]
    program.widen(at(near) - 1, at(far) - 1, target, even, odd, Math.ceil(width / block_side))
    return target
  }

  const paint = ({ planes, blue_at, red_at, rgb_at }: Layout): Uint8Array => {
    const [light, blue, red] = planes
    if (light === undefined) return bytes.subarray(0, 0)
    for (const plane of planes) fillPlane(plane)
    const { width, height } = light
    const steps = Math.ceil(width / pixels_at_once)
    if (!blue) bytes.fill(middle_sample, blue_at, blue_at + steps * pixels_at_once)
    for (let y = 0; y < height; y++) {
      const blue_row = blue ? colourRow(blue, light, y, blue_at) : blue_at
      const red_row = red ? colourRow(red, light, y, red_at) : blue_at
      const target = rgb_at + y * width * colours
      program.colour(light.pixels_at + y * light.stride, blue_row, red_row, target, steps)
    }
    return bytes.subarray(rgb_at, rgb_at + width * height * colours)
  }
  return { numbers, paint }
}

/**
 * A decoder for one thread: RGB pixels, its own until it is asked again; undefined of what is
 * large, not plain or not sound.
 */
export const quickJpeg = (): ((bytes: Uint8Array, head: JpegHead) => Uint8Array | undefined) => {
  const codesFor = keptCodes(codes_max)
  const { numbers, paint } = painter()
  const scan = new Uint8Array(quick_bytes_max + block_bytes_max)
  const view = new DataView(scan.buffer)
  return (bytes, { width, height, is_plain }) => {
    const is_small = width * height <= quick_pixels_max && bytes.length <= quick_bytes_max
    const file = is_plain && is_small ? jpegFile(bytes, codesFor) : undefined
    if (file?.width !== width || file.height !== height) return undefined
    const layout = layoutOf(file)
    const [light, colour] = file.components
    const is_halved = colour !== undefined && colour.across !== light?.across
    const is_rough = is_halved && width <= 2 * (smooth_width_min - 1)
    if (layout.bytes > memory_bytes || is_rough) return undefined
    const length = unmarked(bytes, file.scan_at, scan)
    if (length === undefined) return undefined
    // A block that is cut off reads on in zeros, and is found out behind it.
    scan.fill(0, length, length + block_bytes_max)
    if (!numbersRead(layout, numbers, { view, at: 0 }, length)) return undefined
    return paint(layout)
  }
}
