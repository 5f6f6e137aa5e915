import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { Instant, Metadata, text } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'

const referenceLengthMax = 140

/** How much leaves which wallet for which bank account. `fromWalletType` may be left out: the id's prefix says it. */
export const NewWithdrawal = z.strictObject({
  fromWalletId: z.union([id('mwt'), id('cad')]),
  fromWalletType: z.enum(['master', 'child']).optional(),
  amount: z
    .string()
    .min(1)
    .max(100)
    .meta({ description: 'Decimal amount in whole tokens, 50 or more.', example: '125' }),
  token: z.string().min(1).max(32).meta({ example: 'USDC' }),
  chain: ChainName,
  bankAccountId: id('bac'),
  reference: text(referenceLengthMax, 1).optional().meta({ description: 'What the receiver reads on the statement.' }),
  metadata: Metadata.optional(),
})
export type NewWithdrawal = z.output<typeof NewWithdrawal>

export const WithdrawalStatus = z.enum(['pending_conversion', 'conversion_complete', 'completed', 'failed'])

export const Refund = z.enum(['none', 'expected', 'done', 'held'])

export const Withdrawal = z.strictObject({
  id: id('wdr'),
  fromWalletId: z.union([id('mwt'), id('cad')]),
  status: WithdrawalStatus,
  txHash: z
    .string()
    .nullable()
    .meta({ description: 'What carried the tokens to the partner; null until it is signed.' }),
  amount: z.string(),
  token: z.string(),
  chain: ChainName,
  bankAccountId: id('bac'),
  currency: z.string().meta({ description: 'What the bank account is paid in.' }),
  reference: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  feeAmount: z
    .string()
    .nullable()
    .meta({ description: 'What the partner keeps, in whole tokens; null until it says so.' }),
  exchangeRate: z.string().nullable(),
  payoutAmount: z
    .string()
    .nullable()
    .meta({ description: 'What the bank is sent, in currency, by the partner’s word.' }),
  estimatedDays: z.number().int().meta({ description: 'Bank days that this currency usually takes.' }),
  reason: z.string().nullable().meta({ description: 'Why it failed.' }),
  refund: Refund.nullable().meta({ description: 'Of a failed one, what becomes of tokens that the partner had.' }),
  createdAt: Instant,
  completedAt: Instant.nullable(),
  failedAt: Instant.nullable(),
})
export type Withdrawal = z.input<typeof Withdrawal>

export const WithdrawalParams = z.strictObject({ id: id('wdr') })
