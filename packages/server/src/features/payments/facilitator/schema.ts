import { z } from 'zod'
import { named } from '../../../platform/named.ts'
import { AnyJsonObject, text } from '../../../platform/wire.ts'

/**
 * The request of a resource server to `/verify` and `/settle`. Unknown members are allowed: other implementations add their own. The
 * payment's version and scheme determine how the two halves are checked, and an invalid one is a negative answer, not a 422.
 * Source: x402 specification v2 section 7, v1 section 7.
 */
export const FacilitatorBody = z.looseObject({
  x402Version: z.int().meta({ example: 2 }),
  paymentPayload: AnyJsonObject,
  paymentRequirements: AnyJsonObject,
})
export type FacilitatorBody = z.output<typeof FacilitatorBody>

export const VerifyAnswer = z.strictObject({
  isValid: z.boolean(),
  invalidReason: z.string().optional(),
  invalidMessage: z.string().optional(),
  payer: z.string().optional(),
})
export type VerifyAnswer = z.output<typeof VerifyAnswer>

export const SettleAnswer = z.strictObject({
  success: z.boolean(),
  errorReason: z.string().optional(),
  errorMessage: z.string().optional(),
  payer: z.string().optional(),
  transaction: z.string().meta({ description: 'Transaction hash; empty when there is none.' }),
  network: z.string().meta({ description: 'As the requirements name it: CAIP-2, or the name of version 1.' }),
  amount: z
    .string()
    .optional()
    .meta({ description: 'What was taken, in the smallest unit, where the scheme may take less.' }),
})
export type SettleAnswer = z.output<typeof SettleAnswer>

export const Supported = z.strictObject({
  kinds: z.array(
    z.strictObject({
      x402Version: z.int(),
      scheme: z.string(),
      network: z.string(),
      extra: z.record(z.string(), z.unknown()).optional(),
    }),
  ),
  extensions: z.array(z.string()),
  signers: z.record(z.string(), z.array(z.string())),
})

const wholeNumber = z.coerce.number().int()

/** The filters of the official discovery client. */
export const DiscoveryQuery = z.strictObject({
  type: z.enum(['http', 'mcp']).optional(),
  payTo: text(128, 1).optional(),
  scheme: text(64, 1).optional(),
  network: text(64, 1).optional(),
  extensions: text(64, 1).optional(),
  limit: wholeNumber.min(1).max(100).default(20),
  offset: wholeNumber.min(0).max(1_000_000).default(0),
})
export type DiscoveryQuery = z.output<typeof DiscoveryQuery>

export const DiscoveredResources = z.strictObject({
  x402Version: z.literal(2),
  items: z.array(
    z.looseObject({
      resource: z.string(),
      type: z.string(),
      x402Version: z.int(),
      accepts: z.array(z.record(z.string(), z.unknown())),
      lastUpdated: z.iso.datetime(),
    }),
  ),
  pagination: z.strictObject({ limit: z.int(), offset: z.int(), total: z.int() }),
})

named({ FacilitatorBody, VerifyAnswer, SettleAnswer, Supported, DiscoveredResources })
