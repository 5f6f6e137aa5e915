import { z } from 'zod'
import { named } from '../../../platform/named.ts'
import { AnyJsonObject, text } from '../../../platform/wire.ts'

/**
 * The request of a resource server to `/verify` and `/settle`. Unknown members are allowed: other implementations add their own. The
 * payment's version and scheme determine how the two halves are checked, and an invalid one is a negative response, not a 422.
 * Source: x402 specification v2 section 7, v1 section 7.
 */
export const FacilitatorBody = z.looseObject({
  x402Version: z.int().meta({ example: 2 }).describe('Version of x402: 1 or 2.'),
  paymentPayload: AnyJsonObject.describe('The payment payload of the client, as x402 defines it.'),
  paymentRequirements: AnyJsonObject.describe('The requirements that the payload must meet, as x402 defines them.'),
})
export type FacilitatorBody = z.output<typeof FacilitatorBody>

export const VerifyResponse = z.strictObject({
  isValid: z.boolean().describe('Whether the payload meets the requirements.'),
  invalidReason: z.string().optional().describe('Error code of x402, if it does not.'),
  invalidMessage: z.string().optional().describe('Explanation of the code.'),
  payer: z.string().optional().describe('Address of the payer.'),
})
export type VerifyResponse = z.output<typeof VerifyResponse>

export const SettleResponse = z.strictObject({
  success: z.boolean().describe('Whether the money has moved.'),
  errorReason: z.string().optional().describe('Error code of x402, if it has not.'),
  errorMessage: z.string().optional().describe('Explanation of the code.'),
  payer: z.string().optional().describe('Address of the payer.'),
  transaction: z.string().meta({ description: 'Transaction hash; empty when there is none.' }),
  network: z.string().meta({ description: 'As the requirements name it: CAIP-2, or the name of version 1.' }),
  amount: z
    .string()
    .optional()
    .meta({ description: 'What was taken, in the smallest unit, where the scheme may take less.' }),
})
export type SettleResponse = z.output<typeof SettleResponse>

export const Supported = z.strictObject({
  kinds: z
    .array(
      z.strictObject({
        x402Version: z.int().describe('Version of x402.'),
        scheme: z.string().describe('Payment scheme, such as `exact`.'),
        network: z.string().describe('CAIP-2 id, or the name of version 1.'),
        extra: z.record(z.string(), z.unknown()).optional().describe('More that the scheme needs to know.'),
      }),
    )
    .describe('What this facilitator verifies and settles.'),
  extensions: z.array(z.string()).describe('Extensions of x402 that are supported.'),
  signers: z
    .record(z.string(), z.array(z.string()))
    .describe('Addresses that send transactions, by family of networks, such as `eip155:*`.'),
})

const wholeNumber = z.coerce.number().int()
/** Items before a page are read too. */
const offsetMax = 10_000

/** The filters of the official discovery client. */
export const DiscoveryQuery = z.strictObject({
  type: z.enum(['http', 'mcp']).optional().describe('Only resources of this type.'),
  payTo: text(128, 1).optional().describe('Only resources that pay this address.'),
  scheme: text(64, 1).optional().describe('Only this payment scheme, such as `exact`.'),
  network: text(64, 1).optional().describe('Only this network, such as `eip155:8453`.'),
  extensions: text(64, 1).optional().describe('Only resources that declare this extension.'),
  limit: wholeNumber.min(1).max(100).default(20).describe('Most items of a page.'),
  offset: wholeNumber
    .min(0)
    .max(offsetMax, `must be at most ${offsetMax}; narrow the list with filters`)
    .default(0)
    .describe('How many items to skip.'),
})
export type DiscoveryQuery = z.output<typeof DiscoveryQuery>

export const DiscoveredResources = z.strictObject({
  x402Version: z.literal(2).describe('Version of x402.'),
  items: z
    .array(
      z.looseObject({
        resource: z.string().describe('URL of the resource.'),
        type: z.string().describe('Type of the resource: `http` or `mcp`.'),
        x402Version: z.int().describe('Version of x402.'),
        accepts: z.array(z.record(z.string(), z.unknown())).describe('Payment requirements, as x402 defines them.'),
        lastUpdated: z.iso.datetime().describe('When the resource was last reported.'),
      }),
    )
    .describe('The resources that are for sale.'),
  pagination: z
    .strictObject({
      limit: z.int().describe('Most items of a page.'),
      offset: z.int().describe('Number of items before this page.'),
      total: z.int().describe('Number of all items, counted up to 1,000 after this page.'),
    })
    .describe('Which part of all resources this is.'),
})

named({ FacilitatorBody, VerifyResponse, SettleResponse, Supported, DiscoveredResources })
