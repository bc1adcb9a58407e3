/**
 * A photo as a network sees it that is not told how its camera was held. What browsers have for
 * that, `imageOrientation`, turns the photo in every way of saying it.
 */

const png_head = 0x89_50_4e_47
/** Of a JPEG and of a PNG, in the same place of a segment and of a chunk. */
const exif_names = [0x45_78_69_66, 0x65_58_49_66]
/** After it a JPEG has no more segments. */
const scan_start = 0xff_da
/** A chunk has no less, and no JPEG ends within so few bytes of a segment with EXIF. */
const part_bytes_min = 12

/** Where the EXIF of a JPEG or PNG begins and ends. */
const exifIn = (view: DataView): readonly [from: number, to: number] | undefined => {
  const is_png = view.getUint32(0) === png_head
  let from = is_png ? 8 : 2
  while (from + part_bytes_min <= view.byteLength && view.getUint16(from) !== scan_start) {
    const bytes = is_png ? part_bytes_min + view.getUint32(from) : 2 + view.getUint16(from + 2)
    if (exif_names.includes(view.getUint32(from + 4))) return [from, from + bytes]
    from += bytes
  }
  return undefined
}

/** The same JPEG or PNG without its EXIF; rejects where there is no file any more. */
export const unturned = async (file: Blob): Promise<Blob> => {
  const exif = exifIn(new DataView(await file.arrayBuffer()))
  return exif === undefined ? file : new Blob([file.slice(0, exif[0]), file.slice(exif[1])])
}
