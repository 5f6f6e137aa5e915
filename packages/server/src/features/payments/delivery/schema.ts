import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { InstantInput } from '../../../platform/wire.ts'
import { VerifiedPayment, VerifyRequest } from '../schema.ts'

export const DeliveredRequest = z.strictObject({
  paymentIds: z.array(id('pay')).min(1).max(100).describe('Payments whose responses have been sent.'),
})
export const Delivered = z.strictObject({
  delivered: z
    .int()
    .meta({ description: 'How many of them were marked now. A payment that was marked before is not counted.' }),
})

const { protocol, credential, digest, resource, method } = VerifyRequest.shape

/** The credential that the payer sent again, with the request that it paid for. */
export const RedeemRequest = z
  .strictObject({
    protocol,
    credential,
    resource: resource.unwrap().describe('URL of the paid route.'),
    method: method.unwrap().describe('HTTP method of the paid request.'),
    digest,
    rerun: z.boolean().default(true).meta({
      description:
        'Whether the handler has to run again. Allowed for GET and HEAD, twice for a payment. False while the response of its first run is kept.',
    }),
    settlementToken: z.string().min(1).max(256).optional().meta({
      description:
        'The token from verify or redeem, if your process still has the response of the handler. With it the redemption skips the grace period.',
    }),
    paymentId: id('pay').optional().meta({
      description:
        'With settlementToken, on the connection on which the credential came first. The caller verified the payment, so the payer proves nothing more.',
    }),
    signature: z
      .strictObject({
        value: z
          .string()
          .regex(/^0x[0-9a-fA-F]{130}$/, 'must be 65 bytes in hex')
          .describe('The signature: 65 bytes in hex after `0x`.'),
        signedAt: InstantInput.describe('When the payer signed (ISO 8601).'),
      })
      .optional()
      .meta({
        description:
          'The payer’s signature (EIP-191) over the payment, the route and the time, at most 5 minutes old, where the credential shows nothing that the chain does not.',
      }),
  })
  .refine((body) => body.paymentId === undefined || body.settlementToken !== undefined, {
    path: ['settlementToken'],
    message: 'give settlementToken with paymentId',
  })
  .meta({
    example: {
      protocol: 'x402',
      credential: 'stub_payment_order_7',
      resource: 'https://api.example.com/report',
      method: 'GET',
    },
  })
export type RedeemRequest = z.output<typeof RedeemRequest>

export const Redemption = VerifiedPayment.extend({
  redemptionToken: z.string().meta({ description: 'Send it to payments.redeemed before you send the response.' }),
  expiresIn: z.int().meta({ description: 'Seconds after which another process may redeem the payment.' }),
})

export const RedeemedRequest = z.strictObject({
  redemptionToken: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'must be the redemptionToken that payments.redeem returned')
    .meta({ example: 'c2VydmUgaXQgb25jZQ' })
    .describe('The token that `payments.redeem` returned.'),
})

named({ DeliveredRequest, Delivered, RedeemRequest, Redemption, RedeemedRequest })
