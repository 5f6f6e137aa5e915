import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { EvmAddress, LegacyCoin } from '../../wallets/index.ts'

export const NewLegacyWithdrawal = z.strictObject({
  to: EvmAddress.describe('Address of the recipient.'),
  amount: z
    .string()
    .min(1)
    .max(100)
    .meta({ description: 'Decimal amount in whole coins, more than zero.', example: '12.5' }),
  coin: LegacyCoin.default('USDC_E').describe('The coin to send.'),
})
export type NewLegacyWithdrawal = z.output<typeof NewLegacyWithdrawal>

export const LegacyWithdrawal = z.strictObject({
  id: id('wtx').meta({ description: 'The transfer: see `transfers.get`.' }),
  status: z.literal('queued').describe('The transfer will be sent.'),
})
export type LegacyWithdrawal = z.input<typeof LegacyWithdrawal>

named({ NewLegacyWithdrawal, LegacyWithdrawal })
