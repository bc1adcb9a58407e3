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
      "empty: the small demo model, which knows drawn leaves only.",
    source: from_model,
  }),
  classes: setting(text(), "", {
    meaning: "Its `class_indices.json`, in either direction; empty: the one beside the model.",
    source: from_model,
  }),
  resize: setting(choice("bicubic", "bilinear", "nearest", "fast"), "bicubic", {
    meaning:
      "How an image becomes 224 by 224: the first three to the byte like Pillow; fast: " +
      "bicubic within a few levels of it, and faster on large photos.",
    source: from_model,
  }),
  scale: setting(choice("auto", "0..1", "-1..1", "0..255"), "auto", {
    meaning:
      "What a byte of colour becomes, as the network was trained; auto: `0..1`, and `0..255` for " +
      "a Keras or tfjs network that divides by 255 itself. An `.onnx` does not tell.",
    source: "document 3 §1 C; plant facts 1",
  }),
  auto_orient: setting(flag, false, {
    meaning: "Whether a photo is turned as its EXIF orientation says; Pillow does not.",
    source: from_facts,
  }),
  workers: setting(integer(0, 64, "threads"), 0, {
    meaning: "Threads that predict; 0: one for each core.",
    source: from_facts,
  }),
  batch_max: setting(integer(1, 64, "images"), 8, {
    meaning: "Images that are predicted together when several wait; nobody waits for more.",
    source: "plant facts 7",
  }),
  queue_max: setting(integer(1, 10_000, "images"), 64, {
    meaning: "Images that may wait for a thread; one more is answered 503.",
    source: "plant facts 7",
  }),
  batch_images_max: setting(integer(1, 1000, "images"), 32, {
    meaning: "Images that one request to `/predict/batch` may have; one more is answered 400.",
    source: "issue 7",
  }),
  image_bytes_max: setting(integer(1024, 200 * mib, "bytes"), 20 * mib, {
    meaning: "Bytes of one image; a larger one is answered 413.",
    source: from_errors,
  }),
  image_pixels_max: setting(integer(1, 500_000_000, "pixels"), 50_000_000, {
    meaning: "Pixels of one image, read from its head before it is decoded; more are 413.",
    source: from_errors,
  }),
}
