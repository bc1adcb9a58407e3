/**
 * Pictures on canvases: the policy of the page lets no image in that is not a file of its own, so
 * that those of the person and of the answers are drawn.
 */
import { unturned } from "./unturned.ts"

/** Longest side of a preview, in pixels. */
const preview_side_max = 640
/** A file beyond this is not decoded for a preview; the server refuses it before. */
const preview_bytes_max = 60_000_000

const draw = (canvas: HTMLCanvasElement, image: ImageBitmap, side_max: number) => {
  const scale = Math.min(1, side_max / Math.max(image.width, image.height))
  canvas.width = Math.max(1, Math.round(image.width * scale))
  canvas.height = Math.max(1, Math.round(image.height * scale))
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height)
  image.close()
}

/** Draws a file small; false where the browser cannot read it. */
export const drawFile = async (canvas: HTMLCanvasElement, file: Blob): Promise<boolean> => {
  if (file.size > preview_bytes_max) return false
  try {
    draw(canvas, await createImageBitmap(file), preview_side_max)
    return true
  } catch {
    return false
  }
}

/** Draws a photo as its pixels are stored, however its camera was held. */
export const drawUnturned = async (canvas: HTMLCanvasElement, file: Blob): Promise<boolean> => {
  try {
    return await drawFile(canvas, await unturned(file))
  } catch {
    return false
  }
}

const png_head = "data:image/png;base64,"

/** Draws a PNG that an answer brought; false where it is none. */
export const drawPng = async (canvas: HTMLCanvasElement, data_url: string): Promise<boolean> => {
  if (!data_url.startsWith(png_head)) return false
  try {
    const text = atob(data_url.slice(png_head.length))
    const bytes = Uint8Array.from(text, (sign) => sign.charCodeAt(0))
    return await drawFile(canvas, new Blob([bytes], { type: "image/png" }))
  } catch {
    return false
  }
}
