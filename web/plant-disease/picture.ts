/**
 * Draws pictures on canvases, because the content security policy allows only the page's own image
 * files.
 */
import { withoutExif } from "./strip-exif.ts"

/** Maximum side of a preview, in pixels. */
const preview_side_max = 640
/** Maximum size of a file to preview; the server's default limit is lower. */
const preview_bytes_max = 60_000_000

const draw = (canvas: HTMLCanvasElement, image: ImageBitmap, side_max: number) => {
  const scale = Math.min(1, side_max / Math.max(image.width, image.height))
  canvas.width = Math.max(1, Math.round(image.width * scale))
  canvas.height = Math.max(1, Math.round(image.height * scale))
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height)
  image.close()
}

/** Draws a scaled-down file; false if the browser cannot decode it. */
export const drawFile = async (canvas: HTMLCanvasElement, file: Blob): Promise<boolean> => {
  if (file.size > preview_bytes_max) return false
  try {
    draw(canvas, await createImageBitmap(file), preview_side_max)
    return true
  } catch {
    return false
  }
}

/** Draws a photo without applying its EXIF orientation. */
export const drawWithoutExif = async (canvas: HTMLCanvasElement, file: Blob): Promise<boolean> => {
  try {
    return await drawFile(canvas, await withoutExif(file))
  } catch {
    return false
  }
}

const png_head = "data:image/png;base64,"

/** Draws the PNG of a response; false if it is invalid. */
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
