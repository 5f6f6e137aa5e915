import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { Instant, Metadata, PageQuery, periodFilters, text } from '../../../platform/wire.ts'
import { approvalOf } from '../../approvals/index.ts'
import { ChainName } from '../../chains/index.ts'

const referenceLengthMax = 140

/** Request for a withdrawal. `fromWalletType` may be omitted: the id's prefix implies it. */
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
  reference: text(referenceLengthMax, 1).optional().meta({ description: "Text on the receiver's bank statement." }),
  metadata: Metadata.optional(),
})
export type NewWithdrawal = z.output<typeof NewWithdrawal>

export const WithdrawalStatus = z.enum(['pending_conversion', 'conversion_complete', 'completed', 'failed'])

export const WithdrawalListQuery = PageQuery.extend({ ...periodFilters, status: WithdrawalStatus.optional() })
export type WithdrawalListQuery = z.output<typeof WithdrawalListQuery>

export const Refund = z.enum(['none', 'expected', 'done', 'held'])

export const Withdrawal = z.strictObject({
  id: id('wdr'),
  fromWalletId: z.union([id('mwt'), id('cad')]),
  status: WithdrawalStatus,
  txHash: z
    .string()
    .nullable()
    .meta({ description: 'The transaction that moved the tokens to the partner; null until it is signed.' }),
  amount: z.string(),
  token: z.string(),
  chain: ChainName,
  bankAccountId: id('bac'),
  currency: z.string().meta({ description: 'The currency of the bank account.' }),
  reference: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  approval: approvalOf,
  feeAmount: z
    .string()
    .nullable()
    .meta({ description: "The partner's fee, in whole tokens; null until the partner reports it." }),
  exchangeRate: z.string().nullable(),
  payoutAmount: z
    .string()
    .nullable()
    .meta({ description: 'The amount that the bank receives, in currency, as the partner reports it.' }),
  estimatedDays: z.number().int().meta({ description: 'Usual number of bank days for this currency.' }),
  reason: z.string().nullable().meta({ description: 'Why it failed.' }),
  refund: Refund.nullable().meta({
    description: 'For a failed withdrawal, the refund state of tokens that the partner received.',
  }),
  createdAt: Instant,
  completedAt: Instant.nullable(),
  failedAt: Instant.nullable(),
})
export type Withdrawal = z.input<typeof Withdrawal>

export const WithdrawalParams = z.strictObject({ id: id('wdr') })

named({ NewWithdrawal, Withdrawal })
