import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { CreatedAt, Instant, PageQuery, text } from '../../../platform/wire.ts'
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
    reason: text(200, 1).optional().meta({ description: 'Your own text; the response and the event include it.' }),
  })
  .meta({ example: { reason: 'The response was lost.' } })
export type RefundRequest = z.output<typeof RefundRequest>

export const RefundQuery = PageQuery

export const Refund = z.strictObject({
  id: id('rfd'),
  paymentId: id('pay'),
  transferId: id('wtx').meta({ description: 'The transfer that pays it: see transfers.get.' }),
  fromWalletId: z.union([id('mwt'), id('cad')]).describe('The wallet that pays.'),
  toAddress: z.string().meta({ description: 'The payer of the payment.' }),
  amount: z.string().describe('Amount in whole tokens.'),
  token: z.string().describe('Symbol of the token.'),
  chain: z.string().describe('Chain of the refund.'),
  reason: z.string().nullable().describe('Reason in the request; null where none was given.'),
  status: z.enum(refundStatuses).meta({
    description:
      '`completed` and payment.refunded follow when the block is final. What a failed refund took can be refunded again.',
  }),
  txHash: z.string().nullable().describe('The transaction; null until it is signed.'),
  approval: approvalOf,
  createdAt: CreatedAt,
  completedAt: Instant.nullable().describe('When the refund became final; null until then.'),
})

named({ RefundRequest, Refund })
