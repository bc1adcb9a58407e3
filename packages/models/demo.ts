/** The bundled demo model, used until an operator configures one. */
import { fileURLToPath } from "node:url"

/** Its path; the class file is next to it. It was trained on drawn leaves, not on plants. */
export const demo_model = fileURLToPath(new URL("../../models/demo/model.json", import.meta.url))
