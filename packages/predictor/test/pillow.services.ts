/** The same as pillow.test.ts; here Pillow has to be there. */
import { is_all_required } from "../../../test/world/programs/absent.ts"
import { agreementWithPillow } from "./pillow.ts"

agreementWithPillow({ is_required: is_all_required })
