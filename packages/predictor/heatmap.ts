/**
 * Occlusion sensitivity: occludes one square of the image after another and shows the drop of the
 * class's probability as a heatmap. Works with any network.
 *
 * Source: plant facts 6; Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks".
 */
import sharp from "sharp"
import { side } from "#schemas/image-side.ts"
import { squares, squares_across } from "./protocol.ts"

const square_side = side / squares_across

/** The image with one square filled with its mean colour. */
export const occludeSquare = (rgb: Uint8Array, square: number): Uint8Array => {
  const mean = meanOf(rgb)
  const occluded = rgb.slice()
  const left = (square % squares_across) * square_side
  const top = Math.floor(square / squares_across) * square_side
  for (let y = top; y < top + square_side; y++) {
    for (let x = left; x < left + square_side; x++) occluded.set(mean, (y * side + x) * 3)
  }
  return occluded
}

const meanOf = (rgb: Uint8Array): ReadonlyArray<number> => {
  const sums = [0, 0, 0]
  for (let i = 0; i < rgb.length; i++) sums[i % 3] = (sums[i % 3] ?? 0) + (rgb[i] ?? 0)
  return sums.map((sum) => Math.round(sum / (rgb.length / 3)))
}

/** The alpha of the largest drop. */
const opacity_max = 170

/** A PNG of 224 by 224 pixels: red at the largest drop, transparent where there is none. */
export const renderHeatmap = async (rgb: Uint8Array, drops: Float32Array): Promise<Uint8Array> => {
  const largest = drops.reduce((one, other) => Math.max(one, other), 0)
  const heat = new Uint8Array(squares * 4)
  for (const [square, drop] of drops.entries()) {
    const part = largest > 0 ? Math.max(0, drop) / largest : 0
    heat.set([255, Math.round(220 * (1 - part)), 0, Math.round(opacity_max * part)], square * 4)
  }
  const raw = { width: squares_across, height: squares_across, channels: 4 } as const
  const overlay = await sharp(heat, { raw })
    .resize(side, side, { fit: "fill", kernel: "linear" })
    .png()
    .toBuffer()
  return sharp(rgb, { raw: { width: side, height: side, channels: 3 } })
    .composite([{ input: overlay }])
    .removeAlpha()
    .png({ compressionLevel: 6 })
    .toBuffer()
}
