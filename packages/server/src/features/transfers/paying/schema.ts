import { carriesCredential, parseUsd } from '@purser/protocol'
import { z } from 'zod'
import { isSendable } from '../../../platform/guarded-fetch.ts'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { FilteredMetadata, Instant, text } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import { Transfer } from '../schema.ts'

const WalletIdOf = z.union([id('mwt'), id('cad')])

const Challenge = z.strictObject({
  status: z.literal(402).describe('The HTTP status, 402.'),
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
type Challenge = z.output<typeof Challenge>

const headersMax = 50

/** The request that the service sends itself. */
const target = {
  url: z.string().max(2_048).optional().meta({
    description: 'The URL to fetch and, if it returns 402, to pay; instead of `challenge`. No redirect is followed.',
  }),
  method: z
    .enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
    .optional()
    .meta({ description: 'With `url`. Default GET.' }),
  headers: z
    .record(z.string().max(128), z.string().max(8_192))
    .refine((headers) => Object.keys(headers).length <= headersMax, `must have at most ${headersMax} members`)
    .refine((headers) => Object.entries(headers).every(isSendable), {
      error: 'must be printable ASCII, without Host and the fields of the connection',
    })
    .refine((headers) => !carriesCredential(headerOf(headers)), 'must not have a payment')
    .optional()
    .meta({ description: 'With `url`: the header fields to send. The service adds none of its own credentials.' }),
  body: z.string().max(350_000).optional().meta({ description: 'With `url` and another method than GET: the body.' }),
  bodyEncoding: z
    .enum(['text', 'base64'])
    .optional()
    .meta({ description: 'How `body` is written: as text (default), which is sent as UTF-8, or in base64.' }),
}

/** Reads a member by its name in any case. */
export function headerOf(headers: Readonly<Record<string, string>>): (name: string) => string | undefined {
  return (wanted) => Object.entries(headers).find(([name]) => name.toLowerCase() === wanted.toLowerCase())?.[1]
}

export const NewWalletPayment = z
  .strictObject({
    fromWalletId: WalletIdOf.meta({ description: 'The master wallet or child address that pays.' }),
    challenge: Challenge.optional().meta({ description: 'The 402 as it was received; instead of `url`.' }),
    ...target,
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
        'A payment that returned 202 and was approved since: this fresh 402 is paid if it is for the same recipient, token and chain and for at most the approved amount.',
    }),
    reference: text(80, 1)
      .optional()
      .meta({ description: 'Your own reference; it is returned and used for nothing else.' }),
    metadata: FilteredMetadata.optional(),
  })
  .superRefine(({ challenge, url, method, headers, body, bodyEncoding }, { addIssue }) => {
    const refuse = (name: string, message: string) =>
      addIssue({ code: 'custom', path: [name], message, input: undefined })
    if ((challenge === undefined) === (url === undefined)) refuse('url', 'either challenge or url must be given')
    if (url === undefined)
      for (const [name, value] of Object.entries({ method, headers, body, bodyEncoding }))
        if (value !== undefined) refuse(name, 'needs a url')
    if (body !== undefined && (method ?? 'GET') === 'GET') refuse('body', 'a GET has no body')
    if (bodyEncoding === 'base64' && !isBase64(body)) refuse('body', 'must be base64')
  })
  .meta({
    example: {
      fromWalletId: 'cad_01k9zq4v7yf4rvt0a9g1h2j3k4',
      challenge: { status: 402, headers: { 'payment-required': 'eyJ4NDAyVmVyc2lvbiI6Mn0=' } },
      maxAmount: '0.05',
    },
  })
export type NewWalletPayment = z.output<typeof NewWalletPayment>

function isBase64(text = ''): boolean {
  return z.base64().safeParse(text).success
}

/** A payment of a 402 that is known. */
export type ChallengePayment = Omit<NewWalletPayment, 'challenge'> & { readonly challenge: Challenge }

const SellerResponse = z
  .strictObject({
    status: z.int().describe('HTTP status.'),
    headers: z.record(z.string(), z.string()).nullable().describe('Header fields.'),
    body: z.string().nullable().describe('The body, in the encoding that `bodyEncoding` names.'),
    bodyEncoding: z.enum(['text', 'base64']).describe('`text` for UTF-8, else `base64`.'),
    isWhole: z.boolean().meta({ description: 'False if the body is longer than 1 MiB, or broke off.' }),
    receipt: z
      .strictObject({
        txHash: z.string().nullable().meta({ description: 'The transaction as the seller states it.' }),
        details: z.record(z.string(), z.unknown()).describe('The whole statement.'),
      })
      .nullable()
      .meta({ description: 'What the seller states of it, by `PAYMENT-RESPONSE` or `Payment-Receipt`.' }),
  })
  .meta({
    description:
      "The seller's response, untrusted. `headers` and `body` are null in a repeat if they were not kept: the first response was lost, or the body was over 64 KiB.",
  })
export type SellerResponse = z.output<typeof SellerResponse>

export const payingMethods = ['x402/v2', 'x402/v1', 'mpp/evm-charge'] as const

export const WalletPayment = z.strictObject({
  ...Transfer.shape,
  method: z.enum(payingMethods).describe('How it was paid.'),
  credential: z
    .strictObject({
      header: z.string().meta({ description: 'Name of the header field to send.' }),
      value: z.string().meta({ description: 'Its value. It gives access to the goods: keep it out of logs.' }),
      validBefore: Instant.meta({ description: 'After this the payee can no longer take the money.' }),
    })
    .nullable()
    .meta({ description: 'Null until an approval is granted and a fresh 402 is paid.' }),
  outcome: z.enum(['paid', 'refused', 'unknown']).nullable().meta({
    description:
      'With `url`: `paid` (2xx), `refused` (402 or 409) or `unknown` (no response, another status, or a refusal that may pass). Null if the service sent no credential.',
  }),
  response: SellerResponse.nullable().describe("The seller's response; null without `url` or if none arrived."),
})
export type WalletPayment = z.input<typeof WalletPayment>

export const FreeResponse = z.strictObject({
  id: z.null().meta({ description: 'Null: nothing was paid.' }),
  response: SellerResponse,
})
export type FreeResponse = z.input<typeof FreeResponse>
named({ ReceivedChallenge: Challenge, NewWalletPayment, WalletPayment, SellerResponse, FreeResponse })
