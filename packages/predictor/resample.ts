/**
 * Resizes RGB images, byte for byte like Pillow's `Image.resize`.
 *
 * Pillow scales the filter by the reduction, uses fixed-point weights, and makes a horizontal and a
 * vertical pass, with bytes in between. Source: Pillow, Resample.c and Geometry.c; plant facts 4.
 */
import { loadKernels } from "./kernel.ts"

/** Fractional bits of a weight. Source: Pillow's Resample.c, PRECISION_BITS. */
const precision_bits = 22
/** Bits of a weight's lower part. */
const low_bits = 11
/** Input pixels per step of the horizontal pass. */
const group_pixels = 4
/** Bytes of a pair of weights: the upper parts, then the lower parts. */
const pair_bytes = 8
/** The narrow pass: at most 5 input pixels, 3 pairs, per output pixel; 4 output pixels at once. */
const narrow_pixels = 5
const narrow_pairs = 3
const narrow_at_once = 4

/** `kernels/resample.wat` documents the parameters. */
const resampleKernels = loadKernels<"horizontal" | "narrow" | "vertical">("resample")

/** RGB pixels of three bytes, row by row without padding. */
export interface Pixels {
  readonly rgb: Uint8Array
  readonly width: number
  readonly height: number
}

export type Filter = "bicubic" | "bilinear" | "nearest"

/** Pillow's weights for one direction. */
export interface Coefficients {
  /** For each output pixel: the first input pixel and the number of them. */
  readonly first: Int32Array
  readonly count: Int32Array
  /** `size` weights per output pixel, of which the first `count` are used. */
  readonly weights: Int32Array
  readonly size: number
}

const filters = {
  bicubic: {
    support: 2,
    at: (x: number) => {
      const a = -0.5
      const distance = Math.abs(x)
      if (distance < 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1
      return distance < 2 ? (((distance - 5) * distance + 8) * distance - 4) * a : 0
    },
  },
  bilinear: { support: 1, at: (x: number) => Math.max(0, 1 - Math.abs(x)) },
}

/** Computes fixed-point weights in Pillow's order of operations. */
export const coefficients = (
  filter: keyof typeof filters,
  from: number,
  to: number,
): Coefficients => {
  const { support: filter_support, at: weightAt } = filters[filter]
  const scale = from / to
  const filter_scale = Math.max(scale, 1)
  const support = filter_support * filter_scale
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

/** The input pixel of each output pixel. Accumulates the scale like Pillow, for equal rounding. */
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
/** Input rows are processed in blocks that fit the core's cache. */
const block_bytes = 256 * 1024
/** Bytes that a vector load may read beyond a row. */
const slack_bytes = 16
const vector_bytes = 16
/** Larger memories are not kept for the next image. */
const kept_bytes_max = 16 * 2 ** 20

const aligned = (bytes: number) => Math.ceil(bytes / slack_bytes) * slack_bytes

/** Splits weights into pairs: two upper parts, then two lower parts. */
const splitWeights = (
  weights: Int32Array,
  count: number,
  pairs: number,
  to: Int16Array,
  at: number,
) => {
  for (let tap = 0; tap < pairs * 2; tap++) {
    const weight = tap < count ? (weights[tap] ?? 0) : 0
    const place = at + (tap >> 1) * 4 + (tap & 1)
    to[place] = weight >> low_bits
    to[place + 2] = weight & ((1 << low_bits) - 1)
  }
}

const pair_numbers = pair_bytes / Int16Array.BYTES_PER_ELEMENT

/** The table and weights of the horizontal pass, in the kernel's format. */
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
    splitWeights(weights.subarray(i * size), count[i] ?? 0, pairs[i] ?? 0, halves, at)
    at += (pairs[i] ?? 0) * pair_numbers
  }
  return { table, halves, is_narrow }
}

interface HorizontalPlan {
  readonly table: Int32Array
  readonly halves: Int16Array
  readonly is_narrow: boolean
}

/** The weights of the vertical pass: the same number of pairs for each output row. */
const verticalPlan = ({ first, count, weights, size }: Coefficients) => {
  const pairs = Math.ceil(size / 2)
  const halves = new Int16Array(first.length * pairs * pair_numbers)
  for (let i = 0; i < first.length; i++) {
    splitWeights(weights.subarray(i * size), count[i] ?? 0, pairs, halves, i * pairs * pair_numbers)
  }
  return { first, count, halves, row_bytes: pairs * pair_bytes }
}

interface Workspace {
  readonly memory: WebAssembly.Memory
  readonly kernels: ReturnType<typeof resampleKernels>
}

type Plan<A> = (filter: keyof typeof filters, from: number, to: number) => A

/** Caches the last plan, because consecutive images often have the same size. */
const cachedPlan = <A>(make: Plan<A>): Plan<A> => {
  let kept: { readonly filter: string; readonly from: number; readonly plan: A } | undefined
  return (filter, from, to) => {
    if (kept?.filter !== filter || kept.from !== from) {
      kept = { filter, from, plan: make(filter, from, to) }
    }
    return kept.plan
  }
}

const planHorizontal: Plan<ReturnType<typeof horizontalPlan>> = (filter, from, to) =>
  horizontalPlan(coefficients(filter, from, to))

const planVertical: Plan<ReturnType<typeof verticalPlan>> = (filter, from, to) =>
  verticalPlan(coefficients(filter, from, to))

/**
 * A resampler to `side` by `side`, a multiple of 4. It reuses its memory, so use one per thread.
 */
export const resampler = (side: number) => {
  let kept: Workspace | undefined
  const plans = { horizontal: cachedPlan(planHorizontal), vertical: cachedPlan(planVertical) }
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

  const resampleFiltered = (image: Pixels, filter: keyof typeof filters): Uint8Array => {
    const { rgb, width, height } = image
    const horizontal = width === side ? undefined : plans.horizontal(filter, width, side)
    const vertical = height === side ? undefined : plans.vertical(filter, height, side)
    const [top, bottom] = rowRange(vertical, height)
    const rows = bottom - top
    const stride = width * 3
    const block_rows = Math.max(1, Math.min(rows, Math.floor(block_bytes / stride)))
    const { table, halves, is_narrow } = horizontal ?? no_plan

    const at_table = aligned(block_rows * stride) + slack_bytes
    const at_halves = at_table + aligned(table.byteLength)
    const at_middle = at_halves + aligned(halves.byteLength)
    // One row more than needed, because the last pair may have only one row; its weight is 0.
    const at_weights = at_middle + aligned((rows + 1) * out_stride) + slack_bytes
    const at_out = at_weights + aligned(vertical?.halves.byteLength ?? 0)
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
      bytes.set(block, horizontal === undefined ? target : 0)
      if (horizontal !== undefined) pass(0, target, at_table, at_halves, n, stride, steps)
    }
    if (vertical === undefined) return bytes.subarray(at_middle, at_middle + side * out_stride)
    new Int16Array(memory.buffer, at_weights, vertical.halves.length).set(vertical.halves)
    for (let y = 0; y < side; y++) {
      const source = at_middle + ((vertical.first[y] ?? 0) - top) * out_stride
      const weights = at_weights + y * vertical.row_bytes
      const target = at_out + y * out_stride
      const pairs = Math.ceil((vertical.count[y] ?? 0) / 2)
      kernels.vertical(source, target, weights, pairs, out_stride, out_blocks)
    }
    return bytes.subarray(at_out, at_out + side * out_stride)
  }

  /** Returns the resized RGB pixels, which are valid until the next call. */
  return (image: Pixels, filter: Filter): Uint8Array => {
    if (image.width === side && image.height === side) return image.rgb
    return filter === "nearest" ? resampleNearest(image, side) : resampleFiltered(image, filter)
  }
}

const no_plan: HorizontalPlan = {
  table: new Int32Array(0),
  halves: new Int16Array(0),
  is_narrow: false,
}

type VerticalPlan = ReturnType<typeof verticalPlan>

/** The range of rows that the vertical pass reads. */
const rowRange = (vertical: VerticalPlan | undefined, height: number): [number, number] => {
  if (vertical === undefined) return [0, height]
  const last = vertical.first.length - 1
  return [vertical.first[0] ?? 0, (vertical.first[last] ?? 0) + (vertical.count[last] ?? 0)]
}

const resampleNearest = ({ rgb, width, height }: Pixels, side: number): Uint8Array => {
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
