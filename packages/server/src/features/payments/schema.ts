import { z } from 'zod'
import { type Id, id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { isWebUrl, parseUrl } from '../../platform/parse-url.ts'
import { CreatedAt, Instant, PageQuery, periodFilters, text } from '../../platform/wire.ts'

const WalletId = z
  .string()
  .regex(/^(byw|mwt|cad)_[0-7][0-9a-hjkmnp-tv-z]{25}$/, 'must be the identifier of a wallet (byw_, mwt_ or cad_)')
  .meta({ example: 'byw_01h455vb4pex5vsknk084sn02q' }) as unknown as z.ZodType<
  Id<'byw'> | Id<'mwt'> | Id<'cad'>,
  Id<'byw'> | Id<'mwt'> | Id<'cad'>
>

/** Decimal US dollars as text. The token limits the number of digits. */
const Price = z
  .string()
  .regex(/^\d{1,60}(\.\d{1,60})?$/, 'must be a decimal amount such as "0.01"')
  .meta({ example: '0.01' })

const Resource = text(2048).refine(isWebUrl, 'must be an http(s) URL')

/** The only algorithm that both drafts and official clients read: a challenge with another could not be paid. */
const BodyDigest = z
  .string()
  .regex(/^sha-256=:[A-Za-z0-9+/]{43}=:$/, 'must be a Content-Digest (RFC 9530) with sha-256, such as sha-256=:…:')
  .meta({
    description:
      'Content-Digest of the paid request’s body. A challenge that carries one is paid only by a request with the same body.',
    example: 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:',
  })

/** Wallets that accept the same payment on other networks. */
const OtherWalletIds = z.array(WalletId).min(1).max(3).meta({
  description:
    'Wallets on other networks that may be paid instead: the 402 offers all, at most four with MPP. Send the same list to challenge and verify.',
})

const HttpMethod = z.string().regex(/^[A-Z]{1,16}$/, 'must be an HTTP method in capitals')

export const ChallengeRequest = z
  .strictObject({
    walletId: WalletId.describe('The wallet that is to be paid.'),
    otherWalletIds: OtherWalletIds.optional(),
    resource: Resource.optional().describe('URL of the paid route.'),
    hostname: z
      .string()
      .max(253)
      .regex(/^[A-Za-z0-9.-]+(:\d{1,5})?$/, 'must be a host name')
      .refine((value) => parseUrl(`https://${value}/`) !== undefined, 'must be a host name')
      .optional()
      .describe('Host that sells, in place of `resource`.'),
    price: Price.describe('Price in US dollars.'),
    method: HttpMethod.optional().meta({
      description:
        'The paid route’s method, where its price is the same for every request. Money sent for an MPP challenge of a `resource` then pays at the challenge’s price until it expires, even if the price has risen.',
    }),
    description: text(1024).optional().describe('What is sold, for the payer to read.'),
    mimeType: text(255).optional().describe('Media type of the sold response.'),
    intent: z
      .enum(['charge', 'session'])
      .default('charge')
      .describe('`charge` for one request, `session` for a pass for many requests.'),
    acceptX402: z.boolean().default(true).describe('Whether x402 is offered.'),
    acceptMPP: z.boolean().default(true).describe('Whether MPP is offered.'),
    signOffers: z.boolean().default(false).meta({
      description:
        'Whether the x402 challenge carries signed offers (extension offer-receipt), by which a payer can prove what was requested. They add about 600 bytes each to the header.',
    }),
    digest: BodyDigest.optional(),
    credentialHeader: z.enum(['Authorization', 'Payment-Authorization']).default('Authorization').meta({
      description:
        'Header in which an MPP client must send its credential; Payment-Authorization where the route already uses Authorization.',
    }),
    ip: z.union([z.ipv4(), z.ipv6()]).optional().meta({
      description:
        'IP address of your caller, to limit its challenges to 20 a minute. Not with count, which is for many callers.',
    }),
    count: z
      .int()
      .min(1)
      .max(100)
      .optional()
      .describe('How many challenges to make. With it the response is a list; each challenge is for one caller.'),
    compact: z.boolean().default(false).meta({
      description:
        'With count: common parts of the challenges are returned once, and mpp is a list. An x402 challenge has nothing specific to one payer.',
    }),
  })
  .refine((body) => !body.compact || body.count !== undefined, {
    path: ['compact'],
    message: 'give count with compact',
  })
  .refine((body) => body.ip === undefined || body.count === undefined, {
    path: ['ip'],
    message: 'give either ip or count: the callers of prefetched challenges are not known yet',
  })
  .refine((body) => body.resource !== undefined || body.hostname !== undefined, {
    path: ['resource'],
    message: 'give resource or hostname',
  })
  .refine((body) => body.acceptX402 || body.acceptMPP, {
    path: ['acceptX402'],
    message: 'accept at least one protocol',
  })
  .meta({
    example: { walletId: 'byw_01h455vb4pex5vsknk084sn02q', resource: 'https://api.example.com/report', price: '0.01' },
  })
export type ChallengeRequest = z.output<typeof ChallengeRequest>

export const Challenge = z.strictObject({
  x402: z.string().nullable().meta({
    description:
      'Value of the PAYMENT-REQUIRED header (x402 version 2). Null if x402 cannot be used: on Tempo, and for a price of zero.',
  }),
  x402V1: z
    .record(z.string(), z.unknown())
    .nullable()
    .meta({ description: 'JSON body of the 402 response (x402 version 1).' }),
  mpp: z.string().nullable().meta({
    description: 'Value of the WWW-Authenticate header (MPP): one offer, or several joined by commas.',
  }),
  expiresAt: Instant.describe('When the challenges expire.'),
})

/** Many challenges of one route and price, with their common parts given once. */
export const CompactChallenges = z.strictObject({
  x402: z
    .string()
    .nullable()
    .describe('Value of the PAYMENT-REQUIRED header without `extra.challengeId`; null if x402 cannot be used.'),
  x402V1: z.record(z.string(), z.unknown()).nullable().describe('JSON body of the 402 response (x402 version 1).'),
  challengeIds: z.array(z.string()).nullable().meta({
    description:
      'For each challenge the extra.challengeId that belongs into every offer of its x402 header; 66 characters. An offer without one is paid like any other, and its payment is redeemed by other proofs alone.',
  }),
  mpp: z.array(z.string()).nullable().meta({
    description: 'For each challenge the value of its WWW-Authenticate header; each must be shown to one payer only.',
  }),
  expiresAt: Instant.describe('When the challenges expire.'),
})

export const VerifyRequest = z.strictObject({
  protocol: z.enum(['x402', 'mpp']).describe('The protocol of the credential.'),
  credential: z
    .string()
    .min(1)
    .max(65_536)
    .meta({ example: 'stub_payment_accepted' })
    .describe(
      'The header value with which the payer paid, as it arrived. In the test environment also `stub_payment_accepted`.',
    ),
  price: Price.describe('Price in US dollars.'),
  currency: z.literal('USD').default('USD').describe('The currency of `price`.'),
  walletId: WalletId.describe('The wallet that is to be paid, as in the challenge.'),
  otherWalletIds: OtherWalletIds.optional(),
  resource: Resource.optional().meta({
    description: 'The paid route’s URL. An MPP challenge for a resource is valid only for it, including its query.',
  }),
  method: HttpMethod.optional().describe('HTTP method of the paid request.'),
  description: text(1024).optional().describe('What is sold; the payment record shows it.'),
  network: z
    .string()
    .regex(/^eip155:\d{1,18}$/, 'must be a CAIP-2 id such as eip155:8453')
    .optional()
    .describe('CAIP-2 id of the only network on which the payment is accepted.'),
  digest: BodyDigest.optional(),
  reportsDelivery: z.boolean().default(false).meta({
    description:
      'Whether you report with payments.delivered that the response was sent. If not, the payment counts as delivered when it is settled.',
  }),
})
export type VerifyRequest = z.output<typeof VerifyRequest>

export const VerifiedPayment = z.strictObject({
  valid: z.literal(true).describe('Always true: a credential that is not valid is an error.'),
  paymentId: id('pay'),
  protocol: z.enum(['x402', 'mpp']).describe('The protocol of the payment.'),
  scheme: z.string().meta({ description: 'How it is paid: exact (x402), charge (MPP), stub (test mode).' }),
  method: z
    .enum(['evm', 'tempo'])
    .nullable()
    .meta({ description: 'The payment method of MPP; null for x402 and stubs.' }),
  challengeId: z.string().nullable().meta({ description: 'Id of the MPP challenge that was paid.' }),
  network: z.string().meta({ description: 'CAIP-2 id of the network.', example: 'eip155:8453' }),
  amount: z.string().describe('Amount that was paid, in whole tokens.'),
  coin: z.string().describe('Symbol of the token.'),
  payer: z.string().nullable().describe('Address of the payer; null where the protocol does not name it.'),
  txHash: z.string().nullable().describe('The transaction; null until the payment is settled.'),
  settledAt: Instant.nullable().describe('When the payment was settled; null until then.'),
  settlementPending: z.boolean().describe('Whether the money has still to move: call `payments.settle`.'),
  settlementToken: z.string().describe('Send it to `payments.settle` with the payment id.'),
  redeemable: z.boolean().meta({
    description:
      'Whether sending the credential again is enough to redeem the payment if it is settled and never delivered: the credential then contains something that is not on the chain.',
  }),
})

export const SettleRequest = z.strictObject({
  paymentId: id('pay'),
  settlementToken: z.string().min(1).max(256).describe('The token that `payments.verify` returned.'),
})
export type SettleRequest = z.output<typeof SettleRequest>

export const ReleaseRequest = SettleRequest.pick({ settlementToken: true })
export type ReleaseRequest = z.output<typeof ReleaseRequest>

export const Settlement = z.strictObject({
  txHash: z.string().nullable().describe('The transaction that moved the money; null for a stub payment.'),
  settledAt: Instant.describe('When the payment was settled.'),
  redemptionRequested: z.boolean().meta({
    description:
      'Whether the payer has requested the response again since. If so, call payments.redeem before you send it.',
  }),
  receipt: z.string().nullable().meta({
    description:
      'A receipt that anybody can check, as a JWS (x402 extension offer-receipt): who paid, for which resource, in which transaction. Null where payer or resource is not known.',
  }),
})
export const Settling = z.strictObject({
  status: z.literal('settling').describe('The outcome is not known yet: call `payments.settle` again.'),
  txHash: z.string().nullable().describe('The transaction once a block contains it; null before.'),
})

export const paymentStatuses = ['verified', 'settling', 'settled', 'settlement_failed', 'voided'] as const

export const Payment = z.strictObject({
  id: id('pay'),
  status: z
    .enum(paymentStatuses)
    .describe(
      '`verified`: the credential is valid and the money has not moved. `settling`: a transaction is under way. `settled`: the money has moved. `settlement_failed`: the money did not move. `voided`: it was released, not settled in time, or evicted for another payment. If the signature is used after all while it is valid, both become `settled`.',
    ),
  protocol: z.enum(['x402', 'mpp']).describe('The protocol of the payment.'),
  amount: z.string().describe('Amount in whole tokens.'),
  rawAmount: z.string().describe('Amount in the smallest unit of the token.'),
  token: z.string().describe('Symbol of the token.'),
  chain: z.string().describe('Chain of the payment, by the name of the wallet.'),
  network: z
    .string()
    .meta({ description: 'Name of the network; `chains.list` gives its CAIP-2 id.', example: 'base-sepolia' }),
  payer: z.string().nullable().describe('Address of the payer; null where the protocol does not name it.'),
  payTo: z.string().describe('Address that is paid.'),
  walletId: z.string().nullable().describe('The wallet that is paid; null for a payment by the facilitator alone.'),
  resource: z.string().nullable().describe('URL of the paid route; null where none was named.'),
  route: z.string().nullable().describe('Address of the paid route without its query; null where none was named.'),
  method: z.string().nullable().describe('HTTP method of the paid request; null where none was named.'),
  description: z.string().nullable().describe('What was sold; null where it was not described.'),
  apiKeyId: z
    .union([id('key'), id('acc')])
    .meta({ description: 'The API key of the call; the account where a person made it in the dashboard.' }),
  txHash: z.string().nullable().describe('The transaction; null until the money moves.'),
  settledAt: Instant.nullable().describe('When the payment was settled; null until then.'),
  failureReason: z
    .string()
    .nullable()
    .describe('Code of why the settlement failed or the payment was voided; null otherwise.'),
  vaultId: z.string().nullable().describe('The vault that came with its session; null without one.'),
  sessionId: z.string().nullable().describe('The session that the payment opened; null without one.'),
  deliveredAt: Instant.nullable().meta({
    description:
      'When the response was sent to the payer; when it was settled, if the caller does not report delivery.',
  }),
  redeemedAt: Instant.nullable().meta({ description: 'When a redemption delivered the response.' }),
  refundedAmount: z.string().meta({ description: 'What refunds have paid back, or are about to.' }),
  challengeId: z.string().nullable().describe('The MPP challenge that was paid; null without one.'),
  batchId: id('ctx')
    .nullable()
    .meta({ description: 'The service’s transaction that settles it with others; null where another sends it.' }),
  batchPayments: z.int().describe('How many of your payments that transaction settles.'),
  block: z.int().nullable().describe('Block of the transaction, where the service sent it.'),
  isFinal: z.boolean().describe('Whether that block is final.'),
  gasUsd: z.string().describe('Gas that the operator paid for it, in US dollars.'),
  receipt: z.string().nullable().describe('The signed receipt of `payments.settle`; null until it is settled.'),
  createdAt: CreatedAt,
})

export const PaymentLog = z.strictObject({
  id: id('plog'),
  paymentId: id('pay'),
  route: z.string().nullable().describe('Address of the paid route without its query; null where none was named.'),
  method: z.string().nullable().describe('HTTP method of the paid request; null where none was named.'),
  amount: z.string().describe('Amount in whole tokens.'),
  token: z.string().describe('Symbol of the token.'),
  chain: z.string().describe('Chain of the payment, by the name of the wallet.'),
  protocol: z.enum(['x402', 'mpp']).describe('The protocol of the payment.'),
  txHash: z.string().nullable().describe('The transaction; null until the money moves.'),
  payer: z.string().nullable().describe('Address of the payer; null where the protocol does not name it.'),
  walletId: z.string().nullable().describe('The wallet that is paid; null for a payment by the facilitator alone.'),
  vaultId: z.string().nullable().describe('The vault that came with its session; null without one.'),
  sessionId: z.string().nullable().describe('The session that the payment opened; null without one.'),
  apiKeyId: z
    .union([id('key'), id('acc')])
    .meta({ description: 'The API key of the call; the account where a person made it in the dashboard.' }),
  status: z.enum(paymentStatuses).describe('Status of the payment, as `payments.get` shows it.'),
  createdAt: CreatedAt,
})

const logFilters = {
  route: text(2048).optional().describe('Only this paid route, as a path or a URL.'),
  protocol: z.enum(['x402', 'mpp']).optional().describe('Only payments of this protocol.'),
  walletId: text(64).optional().describe('Only payments to this wallet.'),
  apiKeyId: text(64).optional().describe('Only payments that this API key verified.'),
  ...periodFilters,
}
export const LogQuery = PageQuery.extend({
  ...logFilters,
  status: z.enum(paymentStatuses).optional().describe('Only payments in this status.'),
  chain: text(64).optional().describe('Only payments on this chain.'),
  payer: text(64).optional().describe('Only payments of this address.'),
  batchId: id('ctx').optional().describe('Only payments that this transaction of the service settles.'),
})
export type LogQuery = z.output<typeof LogQuery>
export const SummaryQuery = z.strictObject(logFilters)
export type LogFilters = z.output<typeof SummaryQuery>

export const RouteSummary = z.strictObject({
  route: z.string().nullable().describe('Address of the paid route without its query; null for all other payments.'),
  totalPayments: z.int().describe('Number of payments that have not failed.'),
  totalRevenue: z.string().describe('Sum of the payments, in whole tokens.'),
  token: z.string().describe('Symbol of the token.'),
})

export const PaymentParams = z.strictObject({ id: id('pay') })
export const PaymentLogParams = z.strictObject({ paymentLogId: id('plog') })

named({
  ChallengeRequest,
  Challenge,
  CompactChallenges,
  VerifyRequest,
  VerifiedPayment,
  SettleRequest,
  ReleaseRequest,
  Settlement,
  Settling,
  Payment,
  PaymentLog,
  RouteSummary,
})
