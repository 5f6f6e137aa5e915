import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { EvmAddress, LegacyCoin } from '../../wallets/index.ts'

export const NewLegacyWithdrawal = z.strictObject({
  to: EvmAddress,
  amount: z
    .string()
    .min(1)
    .max(100)
    .meta({ description: 'Decimal amount in whole coins, more than zero.', example: '12.5' }),
  coin: LegacyCoin.default('USDC_E'),
})
export type NewLegacyWithdrawal = z.output<typeof NewLegacyWithdrawal>

export const LegacyWithdrawal = z.strictObject({
  id: id('wtx').meta({ description: "Hash of the transfer's transaction." }),
  status: z.literal('queued'),
})
export type LegacyWithdrawal = z.input<typeof LegacyWithdrawal>

named({ NewLegacyWithdrawal, LegacyWithdrawal })
