/** The same as pillow.test.ts; here Pillow has to be there. */
import { agreementWithPillow } from "./pillow.ts"

agreementWithPillow({ is_required: process.env.ALMANAC_REQUIRE_ALL === "1" })
