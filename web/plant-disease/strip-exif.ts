/**
 * Removes the EXIF data of a photo, so that it is shown without its EXIF orientation. Browsers
 * apply the orientation even with `imageOrientation`, regardless of its value.
 */

const png_head = 0x89_50_4e_47
/** The EXIF marker of JPEG and of PNG, at the same offset in a segment and in a chunk. */
const exif_names = [0x45_78_69_66, 0x65_58_49_66]
/** Start of the image data of a JPEG: no EXIF segment follows. */
const scan_start = 0xff_da
/** Minimum size of a PNG chunk; shorter than what follows EXIF in any JPEG. */
const part_bytes_min = 12

/** The byte range of the EXIF data of a JPEG or PNG. */
const exifRange = (view: DataView): readonly [from: number, to: number] | undefined => {
  const is_png = view.getUint32(0) === png_head
  let from = is_png ? 8 : 2
  while (from + part_bytes_min <= view.byteLength && view.getUint16(from) !== scan_start) {
    const bytes = is_png ? part_bytes_min + view.getUint32(from) : 2 + view.getUint16(from + 2)
    if (exif_names.includes(view.getUint32(from + 4))) return [from, from + bytes]
    from += bytes
  }
  return undefined
}

/** The same JPEG or PNG without EXIF; rejects if the file is gone. */
export const withoutExif = async (file: Blob): Promise<Blob> => {
  const exif = exifRange(new DataView(await file.arrayBuffer()))
  return exif === undefined ? file : new Blob([file.slice(0, exif[0]), file.slice(exif[1])])
}
