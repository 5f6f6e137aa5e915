import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { Instant, PageQuery, text } from '../../../platform/wire.ts'
import { approvalOf } from '../../approvals/index.ts'

export const refundStatuses = ['pending', 'completed', 'failed'] as const

export const RefundRequest = z
  .strictObject({
    fromWalletId: z
      .union([id('mwt'), id('cad'), id('byw')])
      .optional()
      .meta({
        description:
          'Managed wallet or child address that pays, on the payment’s network. Left out: the wallet that was paid, where it is one.',
      }),
    amount: z.string().min(1).max(100).optional().meta({
      description: 'Decimal amount in whole tokens of the payment. Left out: all that was not refunded yet.',
      example: '0.01',
    }),
    reason: text(200, 1).optional().meta({ description: 'Your own words; they go into the answer and the event.' }),
  })
  .meta({ example: { reason: 'The answer was lost.' } })
export type RefundRequest = z.output<typeof RefundRequest>

export const RefundQuery = PageQuery

export const Refund = z.strictObject({
  id: id('rfd'),
  paymentId: id('pay'),
  transferId: id('wtx').meta({ description: 'The transfer that pays it: see transfers.get.' }),
  fromWalletId: z.union([id('mwt'), id('cad')]),
  toAddress: z.string().meta({ description: 'The payer of the payment.' }),
  amount: z.string(),
  token: z.string(),
  chain: z.string(),
  reason: z.string().nullable(),
  status: z.enum(refundStatuses).meta({
    description:
      'completed and payment.refunded follow when the block is final. What a failed refund took can be refunded again.',
  }),
  txHash: z.string().nullable(),
  approval: approvalOf,
  createdAt: Instant,
  completedAt: Instant.nullable(),
})

named({ RefundRequest, Refund })
