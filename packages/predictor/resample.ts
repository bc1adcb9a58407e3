/**
 * Resizes RGB images to what the network sees, byte for byte as Pillow's `Image.resize` does.
 *
 * Pillow's scheme: a filter as wide as the reduction, weights in fixed point, first all rows, then
 * all columns, rounded to bytes between. Source: Pillow, Resample.c and Geometry.c; plant facts 4.
 */
import { kernelsOf } from "./kernel.ts"

/** Binary digits after the point of a weight. Source: Pillow's Resample.c, PRECISION_BITS. */
const precision_bits = 22
/** Digits of a weight's lower part. */
const low_bits = 11
/** Pixels that one step of the horizontal pass takes together. */
const group_pixels = 4
/** Bytes of the weights of one pair: upper parts, then lower parts. */
const pair_bytes = 8
/** Pixels that the narrow pass takes for one pixel out, and their pairs; it makes four at once. */
const narrow_pixels = 5
const narrow_pairs = 3
const narrow_at_once = 4

/** `kernels/resample.wat` says what these take. */
const resampleKernels = kernelsOf<"horizontal" | "narrow" | "vertical">("resample")

/** Pixels, three bytes each, row by row without gaps. */
export interface Pixels {
  readonly rgb: Uint8Array
  readonly width: number
  readonly height: number
}

export type Filter = "bicubic" | "bilinear" | "nearest"

/** Weights of Pillow for one direction, as JPEG's own limit of a side bounds them. */
export interface Coefficients {
  /** For each pixel out: the first pixel in, and how many. */
  readonly first: Int32Array
  readonly count: Int32Array
  /** `size` places for each pixel out, of which it uses `count`. */
  readonly weights: Int32Array
  readonly size: number
}

const filters = {
  bicubic: {
    support: 2,
    at: (x: number) => {
      const a = -0.5
      const far = Math.abs(x)
      if (far < 1) return ((a + 2) * far - (a + 3)) * far * far + 1
      return far < 2 ? (((far - 5) * far + 8) * far - 4) * a : 0
    },
  },
  bilinear: { support: 1, at: (x: number) => Math.max(0, 1 - Math.abs(x)) },
}

/** How `to` pixels are made of `from`, in fixed point. The order of operations is Pillow's. */
export const coefficients = (
  filter: keyof typeof filters,
  from: number,
  to: number,
): Coefficients => {
  const { support: reach, at: weightAt } = filters[filter]
  const scale = from / to
  const filter_scale = Math.max(scale, 1)
  const support = reach * filter_scale
  const size = Math.ceil(support) * 2 + 1
  const weights = new Int32Array(to * size)
  const first = new Int32Array(to)
  const count = new Int32Array(to)
  const values = new Float64Array(size)
  for (let i = 0; i < to; i++) {
    const centre = (i + 0.5) * scale
    const low = Math.max(Math.trunc(centre - support + 0.5), 0)
    const n = Math.min(Math.trunc(centre + support + 0.5), from) - low
    let total = 0
    for (let j = 0; j < n; j++) {
      const value = weightAt((j + low - centre + 0.5) * (1 / filter_scale))
      values[j] = value
      total += value
    }
    for (let j = 0; j < n; j++) {
      const value = total === 0 ? (values[j] ?? 0) : (values[j] ?? 0) / total
      weights[i * size + j] = Math.trunc((value < 0 ? -0.5 : 0.5) + value * 2 ** precision_bits)
    }
    first[i] = low
    count[i] = n
  }
  return { first, count, weights, size }
}

/** Which pixel in is each pixel out. Pillow adds the scale up, so its rounding is repeated. */
export const nearest = (from: number, to: number): Int32Array => {
  const scale = from / to
  let at = scale * 0.5
  return Int32Array.from({ length: to }, () => {
    const pixel = Math.trunc(at)
    at += scale
    return pixel
  })
}

const page_bytes = 65_536
/** Rows that are copied in and resized at a time: they stay in a core's own cache. */
const block_bytes = 256 * 1024
/** What a vector's load may read beyond a row. */
const slack_bytes = 16
const vector_bytes = 16
/** Larger images are rare, and what they took is given back. */
const kept_bytes_max = 16 * 2 ** 20

const aligned = (bytes: number) => Math.ceil(bytes / slack_bytes) * slack_bytes

/** Two taps' upper parts, then their lower parts. */
const halved = (weights: Int32Array, count: number, pairs: number, to: Int16Array, at: number) => {
  for (let tap = 0; tap < pairs * 2; tap++) {
    const weight = tap < count ? (weights[tap] ?? 0) : 0
    const place = at + (tap >> 1) * 4 + (tap & 1)
    to[place] = weight >> low_bits
    to[place + 2] = weight & ((1 << low_bits) - 1)
  }
}

const pair_numbers = pair_bytes / Int16Array.BYTES_PER_ELEMENT

/** The horizontal pass's table and weights, as the program reads them. */
const horizontalPlan = ({ first, count, weights, size }: Coefficients): HorizontalPlan => {
  const is_narrow = count.every((taps) => taps <= narrow_pixels)
  const table = new Int32Array(first.length * 2)
  const groups = Array.from(count, (taps) => Math.ceil(taps / group_pixels))
  const pairs = groups.map((one) => (is_narrow ? narrow_pairs : (one * group_pixels) / 2))
  const all = pairs.reduce((sum, one) => sum + one, 0)
  const halves = new Int16Array(all * pair_numbers)
  let at = 0
  for (let i = 0; i < first.length; i++) {
    table[i * 2] = 3 * (first[i] ?? 0)
    table[i * 2 + 1] = groups[i] ?? 0
    halved(weights.subarray(i * size), count[i] ?? 0, pairs[i] ?? 0, halves, at)
    at += (pairs[i] ?? 0) * pair_numbers
  }
  return { table, halves, is_narrow }
}

interface HorizontalPlan {
  readonly table: Int32Array
  readonly halves: Int16Array
  readonly is_narrow: boolean
}

/** The vertical pass's weights: as many pairs for each row out. */
const verticalPlan = ({ first, count, weights, size }: Coefficients) => {
  const pairs = Math.ceil(size / 2)
  const halves = new Int16Array(first.length * pairs * pair_numbers)
  for (let i = 0; i < first.length; i++) {
    halved(weights.subarray(i * size), count[i] ?? 0, pairs, halves, i * pairs * pair_numbers)
  }
  return { first, count, halves, row_bytes: pairs * pair_bytes }
}

interface Workspace {
  readonly memory: WebAssembly.Memory
  readonly kernels: ReturnType<typeof resampleKernels>
}

type Plan<A> = (filter: keyof typeof filters, from: number, to: number) => A

/** Keeps the last one: images of one sender mostly have one size. */
const planOf = <A>(make: Plan<A>): Plan<A> => {
  let kept: { readonly filter: string; readonly from: number; readonly plan: A } | undefined
  return (filter, from, to) => {
    if (kept?.filter !== filter || kept.from !== from) {
      kept = { filter, from, plan: make(filter, from, to) }
    }
    return kept.plan
  }
}

const plannedAcross: Plan<ReturnType<typeof horizontalPlan>> = (filter, from, to) =>
  horizontalPlan(coefficients(filter, from, to))

const plannedDown: Plan<ReturnType<typeof verticalPlan>> = (filter, from, to) =>
  verticalPlan(coefficients(filter, from, to))

/** A resizer for one thread, to a multiple of 4: it keeps its memory from image to image. */
export const resampler = (side: number) => {
  let kept: Workspace | undefined
  const planned = { across: planOf(plannedAcross), down: planOf(plannedDown) }
  const out_stride = side * 3
  const out_blocks = Math.ceil(out_stride / vector_bytes)
  const out_bytes = aligned(side * out_stride) + slack_bytes

  const workspace = (bytes: number): Workspace => {
    const pages = Math.ceil(bytes / page_bytes)
    if (kept !== undefined && kept.memory.buffer.byteLength >= bytes) return kept
    const memory = new WebAssembly.Memory({ initial: pages })
    const made = { memory, kernels: resampleKernels(memory) }
    if (bytes <= kept_bytes_max) kept = made
    return made
  }

  const filtered = (image: Pixels, filter: keyof typeof filters): Uint8Array => {
    const { rgb, width, height } = image
    const across = width === side ? undefined : planned.across(filter, width, side)
    const down = height === side ? undefined : planned.down(filter, height, side)
    const [top, bottom] = rowsOf(down, height)
    const rows = bottom - top
    const stride = width * 3
    const block_rows = Math.max(1, Math.min(rows, Math.floor(block_bytes / stride)))
    const { table, halves, is_narrow } = across ?? no_plan

    const at_table = aligned(block_rows * stride) + slack_bytes
    const at_halves = at_table + aligned(table.byteLength)
    const at_middle = at_halves + aligned(halves.byteLength)
    // The last pair of rows may have one that is none, and counts as none.
    const at_weights = at_middle + aligned((rows + 1) * out_stride) + slack_bytes
    const at_out = at_weights + aligned(down?.halves.byteLength ?? 0)
    const { memory, kernels } = workspace(at_out + out_bytes)
    const bytes = new Uint8Array(memory.buffer)

    new Int32Array(memory.buffer, at_table, table.length).set(table)
    new Int16Array(memory.buffer, at_halves, halves.length).set(halves)
    const [pass, steps] = is_narrow
      ? [kernels.narrow, side / narrow_at_once]
      : [kernels.horizontal, side]
    for (let row = 0; row < rows; row += block_rows) {
      const n = Math.min(block_rows, rows - row)
      const from = (top + row) * stride
      const target = at_middle + row * out_stride
      const block = rgb.subarray(from, from + n * stride)
      bytes.set(block, across === undefined ? target : 0)
      if (across !== undefined) pass(0, target, at_table, at_halves, n, stride, steps)
    }
    if (down === undefined) return bytes.subarray(at_middle, at_middle + side * out_stride)
    new Int16Array(memory.buffer, at_weights, down.halves.length).set(down.halves)
    for (let y = 0; y < side; y++) {
      const source = at_middle + ((down.first[y] ?? 0) - top) * out_stride
      const weights = at_weights + y * down.row_bytes
      const target = at_out + y * out_stride
      const pairs = Math.ceil((down.count[y] ?? 0) / 2)
      kernels.vertical(source, target, weights, pairs, out_stride, out_blocks)
    }
    return bytes.subarray(at_out, at_out + side * out_stride)
  }

  /** Answers `side` by `side` RGB pixels, as Pillow makes them; its own until the next image. */
  return (image: Pixels, filter: Filter): Uint8Array => {
    if (image.width === side && image.height === side) return image.rgb
    return filter === "nearest" ? picked(image, side) : filtered(image, filter)
  }
}

const no_plan: HorizontalPlan = {
  table: new Int32Array(0),
  halves: new Int16Array(0),
  is_narrow: false,
}

type VerticalPlan = ReturnType<typeof verticalPlan>

/** The rows that the vertical pass reads, from and to. */
const rowsOf = (down: VerticalPlan | undefined, height: number): [number, number] => {
  if (down === undefined) return [0, height]
  const last = down.first.length - 1
  return [down.first[0] ?? 0, (down.first[last] ?? 0) + (down.count[last] ?? 0)]
}

const picked = ({ rgb, width, height }: Pixels, side: number): Uint8Array => {
  const columns = nearest(width, side)
  const out = new Uint8Array(side * side * 3)
  let at = 0
  for (const y of nearest(height, side)) {
    for (const x of columns) {
      const from = (y * width + x) * 3
      out[at++] = rgb[from] ?? 0
      out[at++] = rgb[from + 1] ?? 0
      out[at++] = rgb[from + 2] ?? 0
    }
  }
  return out
}
