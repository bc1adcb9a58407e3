/** The settings that plant disease prediction owns. Source: decisions of document 3, plant. */
import { choice, flag, integer, setting, text } from "#schemas/setting.ts"

const from_model = "decisions of document 3, plant model"
const from_errors = "decisions of document 3, plant errors"
const from_facts = "plant facts 4"
const mib = 2 ** 20

/** Section `[plant]`. */
export const plant = {
  model: setting(text(), "", {
    meaning:
      "Your trained network: a Keras `.h5` or `.keras`, an `.onnx`, or a tfjs `model.json`; " +
      "empty: the small demo model, trained on drawn leaves only.",
    source: from_model,
  }),
  classes: setting(text(), "", {
    meaning:
      "The model's `class_indices.json`, from name to index or from index to name; empty: the " +
      "file next to the model.",
    source: from_model,
  }),
  resize: setting(choice("bicubic", "bilinear", "nearest", "fast"), "bicubic", {
    meaning:
      "Algorithm that resizes an image to 224 by 224. The first three match Pillow byte for " +
      "byte; fast: within a few levels of bicubic, and faster on large photos.",
    source: from_model,
  }),
  scale: setting(choice("auto", "0..1", "-1..1", "0..255"), "auto", {
    meaning:
      "Range to which colour bytes are scaled, as in training; auto: `0..1`, or `0..255` for " +
      "a Keras or tfjs network that divides by 255 itself. Set it for an `.onnx` that expects " +
      "0..255.",
    source: "document 3 §1 C; plant facts 1",
  }),
  auto_orient: setting(flag, false, {
    meaning:
      "Whether photos are rotated according to their EXIF orientation, which Pillow ignores.",
    source: from_facts,
  }),
  workers: setting(integer(0, 64, "threads"), 0, {
    meaning: "Number of prediction threads; 0: one per core.",
    source: from_facts,
  }),
  batch_max: setting(integer(1, 64, "images"), 8, {
    meaning: "Maximum batch size when several images wait; an image never waits for a full batch.",
    source: "plant facts 7",
  }),
  queue_max: setting(integer(1, 10_000, "images"), 64, {
    meaning: "Maximum number of images waiting for a thread; further requests get status 503.",
    source: "plant facts 7",
  }),
  batch_images_max: setting(integer(1, 1000, "images"), 32, {
    meaning: "Maximum number of images in one request to `/predict/batch`; more get status 400.",
    source: "issue 7",
  }),
  image_bytes_max: setting(integer(1024, 200 * mib, "bytes"), 20 * mib, {
    meaning: "Maximum size of an image in bytes; a larger one gets status 413.",
    source: from_errors,
  }),
  image_pixels_max: setting(integer(1, 500_000_000, "pixels"), 50_000_000, {
    meaning: "Maximum number of pixels, read from the header before decoding; more get status 413.",
    source: from_errors,
  }),
}
