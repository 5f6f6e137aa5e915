import { z } from 'zod'

const HexText = z.templateLiteral(['0x', z.string()])

const StoredSignature = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ecdsa'), v: z.union([z.literal(27), z.literal(28)]), r: HexText, s: HexText }),
  z.object({ kind: z.literal('bytes'), signature: HexText }),
])

/** A signed EIP-3009 authorization as stored. Integers are decimal text. */
export const StoredAuthorization = z.object({
  kind: z.literal('eip3009').default('eip3009'),
  from: HexText,
  to: HexText,
  value: z.string(),
  validAfter: z.string(),
  validBefore: z.string(),
  nonce: HexText,
  signature: StoredSignature,
  deployment: z.object({ factory: HexText, calldata: HexText }).nullable(),
})
export type StoredAuthorization = z.output<typeof StoredAuthorization>

/** A signed Permit2 transfer for one of the x402 proxies (x402 schemes exact and upto on EVM), as stored. */
export const StoredPermit2 = z.object({
  kind: z.literal('permit2'),
  scheme: z.enum(['exact', 'upto']),
  /** The x402 proxy that may spend it. */
  spender: HexText,
  owner: HexText,
  token: HexText,
  /** Most that may be charged. */
  permitted: z.string(),
  /** Amount that is charged; for upto known when settlement is requested. */
  charged: z.string(),
  nonce: z.string(),
  deadline: z.string(),
  witness: z.object({ to: HexText, validAfter: z.string(), facilitator: HexText.nullable() }),
  signature: HexText,
  /** A signed EIP-2612 permit that lets Permit2 spend (extension eip2612GasSponsoring). */
  permit2612: z
    .object({ value: z.string(), deadline: z.string(), v: z.number(), r: HexText, s: HexText })
    .nullable()
    .default(null),
})
export type StoredPermit2 = z.output<typeof StoredPermit2>

/** An authorization and its token. */
export const AuthorizationPayload = StoredAuthorization.extend({ token: HexText })
export type AuthorizationPayload = z.output<typeof AuthorizationPayload>

/** A signed payload that the settler sends. */
export const RelayPayload = z.union([StoredPermit2, AuthorizationPayload])
export type RelayPayload = z.output<typeof RelayPayload>
