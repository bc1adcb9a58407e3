import { agreementWithPandas } from "../../world/capital-pressure/pandas.ts"

// `npm test` does not install pandas; the comparison runs only where pandas is already installed.
agreementWithPandas({ is_required: false })
