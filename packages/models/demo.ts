/** The bundled demo model, used until an operator configures one. */
import { fileURLToPath } from "node:url"

/**
 * Path of the demo model; the class file is next to it. It was trained on drawn leaves, not plants.
 */
export const demo_model = fileURLToPath(new URL("../../models/demo/model.json", import.meta.url))
