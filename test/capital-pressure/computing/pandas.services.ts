import { agreementWithPandas } from "../../world/capital-pressure/pandas.ts"
import { is_all_required } from "../../world/programs/absent.ts"

agreementWithPandas({ is_required: is_all_required })
