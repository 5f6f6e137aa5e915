import { parseUsd } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { Instant, Metadata, text } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import { Transfer } from '../schema.ts'

const WalletIdOf = z.union([id('mwt'), id('cad')])

const Challenge = z.strictObject({
  status: z.literal(402),
  headers: z
    .record(z.string().min(1).max(128), z.string().max(65_536))
    .refine((headers) => Object.keys(headers).length <= 100, 'must have at most 100 members')
    .meta({
      description:
        'The header fields of the 402, by name in any case. `PAYMENT-REQUIRED` and `WWW-Authenticate` are read, the others ignored.',
    }),
  body: z
    .string()
    .max(262_144)
    .optional()
    .meta({ description: 'The body of the 402 as text; x402 version 1 has its offers there.' }),
})
export type Challenge = z.output<typeof Challenge>

export const NewWalletPayment = z
  .strictObject({
    fromWalletId: WalletIdOf.meta({ description: 'The master wallet or child address that pays.' }),
    challenge: Challenge.meta({ description: 'The 402 as it was received.' }),
    maxAmount: z
      .string()
      .max(100)
      .refine((amount) => (parseUsd(amount) ?? 0n) > 0n, 'must be a decimal amount of more than zero')
      .meta({ description: 'Most that is paid, in whole tokens. Offers above it are refused.', example: '0.05' }),
    chains: z
      .array(ChainName)
      .min(1)
      .max(20)
      .optional()
      .meta({ description: 'The chains that may be paid on. If omitted: all that the key and the deployment have.' }),
    tokens: z
      .array(z.string().min(1).max(32))
      .min(1)
      .max(20)
      .optional()
      .meta({ description: 'Symbols of the tokens that may be paid. If omitted: all that pay by signature.' }),
    prefer: z
      .enum(['x402', 'mpp'])
      .optional()
      .meta({ description: 'The protocol to prefer. Otherwise the cheapest offer, then x402.' }),
    approvedPaymentId: id('wtx').optional().meta({
      description:
        'A payment that was answered with 202 and approved since: this fresh 402 is paid if it is for the same recipient, token and chain and for at most the approved amount.',
    }),
    reference: text(80, 1)
      .optional()
      .meta({ description: 'Your own reference; it is returned and used for nothing else.' }),
    metadata: Metadata.optional(),
  })
  .meta({
    example: {
      fromWalletId: 'cad_01k9zq4v7yf4rvt0a9g1h2j3k4',
      challenge: { status: 402, headers: { 'payment-required': 'eyJ4NDAyVmVyc2lvbiI6Mn0=' } },
      maxAmount: '0.05',
    },
  })
export type NewWalletPayment = z.output<typeof NewWalletPayment>

export const payingMethods = ['x402/v2', 'x402/v1', 'mpp/evm-charge'] as const

export const WalletPayment = z.strictObject({
  ...Transfer.shape,
  method: z.enum(payingMethods),
  credential: z
    .strictObject({
      header: z.string().meta({ description: 'Name of the header field to send.' }),
      value: z.string().meta({ description: 'Its value. Whoever has it can get the goods: keep it out of logs.' }),
      validBefore: Instant.meta({ description: 'After this the payee can no longer take the money.' }),
    })
    .nullable()
    .meta({ description: 'Null until an approval is granted and a fresh 402 is paid.' }),
})
export type WalletPayment = z.input<typeof WalletPayment>
