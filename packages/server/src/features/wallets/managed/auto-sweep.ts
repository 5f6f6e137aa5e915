import { z } from 'zod'
import { named } from '../../../platform/named.ts'

/** A decimal amount of a token. The number of its digits is checked against the token's decimals. */
export const MinAmount = z
  .string()
  .regex(/^\d{1,60}(\.\d{1,60})?$/, 'must be a decimal amount such as "0.5"')
  .meta({ description: 'Children with a lower balance are skipped.', example: '0.5' })

export const TokenSymbol = z.string().min(1).max(32).meta({ example: 'USDC' })

/** The token of an automatic sweep, and how often the children are checked. */
export const AutoSweep = z.strictObject({
  token: TokenSymbol.describe('Symbol of the token that is swept.'),
  minAmount: MinAmount,
  everyMinutes: z.int().min(1).max(1_440).default(10).describe('Minutes between two checks of the children.'),
})
export type AutoSweep = z.output<typeof AutoSweep>

named({ AutoSweep })
