/** Where a small JPEG's components lie in the memory in which they become pixels. */
import { block_numbers } from "./codes.ts"
import type { Component, JpegFile } from "./file.ts"
import { block_side, pixels_at_once } from "./module.ts"

const number_bytes = 2
const colours = 3
/** What is read beside a row, on either side. */
const margin = 16

/** Addresses and strides are bytes. */
export interface Plane {
  readonly component: Component
  /** In one row, and rows of them. */
  readonly blocks: number
  readonly rows: number
  /** Pixels that are the image's: the blocks may have more. */
  readonly width: number
  readonly height: number
  /** Its blocks' numbers, row by row; the factors of each block. */
  readonly numbers_at: number
  readonly factors_at: number
  /** Its first pixel. */
  readonly pixels_at: number
  readonly stride: number
}

export interface Layout {
  readonly planes: ReadonlyArray<Plane>
  /** Of the scan, across and down. */
  readonly units: readonly [number, number]
  /** All blocks' numbers, from 0 on. */
  readonly numbers_bytes: number
  /** A row of blue and one of red, as wide as the image. */
  readonly blue_at: number
  readonly red_at: number
  readonly rgb_at: number
  readonly bytes: number
}

const aligned = (bytes: number) => Math.ceil(bytes / margin) * margin

export const layoutOf = ({ width, height, components }: JpegFile): Layout => {
  const across_max = Math.max(...components.map(({ across }) => across))
  const down_max = Math.max(...components.map(({ down }) => down))
  const units_across = Math.ceil(width / (block_side * across_max))
  const units_down = Math.ceil(height / (block_side * down_max))
  let bytes = 0
  const room = (wanted: number) => {
    const from = bytes
    bytes += aligned(wanted)
    return from
  }
  const numbered = components.map((component) => {
    const [blocks, rows] = [units_across * component.across, units_down * component.down]
    const numbers_at = room(blocks * rows * block_numbers * number_bytes)
    return { component, blocks, rows, numbers_at }
  })
  const numbers_bytes = bytes
  const planes = numbered.map((one) => {
    const { across, down } = one.component
    const stride = aligned(one.blocks * block_side) + 2 * margin
    return {
      ...one,
      width: Math.ceil((width * across) / across_max),
      height: Math.ceil((height * down) / down_max),
      factors_at: room(block_numbers * number_bytes),
      pixels_at: room(stride * one.rows * block_side) + margin,
      stride,
    }
  })
  const row_bytes = aligned(width) + 2 * margin
  const [blue_at, red_at] = [room(row_bytes), room(row_bytes)]
  const rgb_at = room((height * width + pixels_at_once) * colours)
  const units = [units_across, units_down] as const
  return { planes, units, numbers_bytes, blue_at, red_at, rgb_at, bytes }
}
