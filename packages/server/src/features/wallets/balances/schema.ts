import { z } from 'zod'
import { named } from '../../../platform/named.ts'
import { ChainName } from '../../chains/index.ts'

/** Balance of one token, or of the native coin. */
export const Balance = z.strictObject({
  tokenSymbol: z.string().describe('Symbol of the token or of the native coin.'),
  formattedBalance: z.string().meta({ description: 'Decimal amount.', example: '12.5' }),
  rawBalance: z.string().meta({ description: 'Integer in the smallest unit.', example: '12500000' }),
  chain: ChainName,
})
export type Balance = z.input<typeof Balance>

named({ Balance })
