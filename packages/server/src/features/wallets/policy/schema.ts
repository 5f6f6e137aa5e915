import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { Instant } from '../../../platform/wire.ts'
import { Caps, policyOperations } from './document.ts'

const ShownRule = z.strictObject({
  recipients: z
    .union([z.literal('any'), z.array(z.string())])
    .describe('Addresses and bank accounts that may receive the money, or `any`.'),
})

/** A document as it is returned: its addresses are checksummed. */
const ShownDocument = z.strictObject({
  operations: z
    .partialRecord(z.enum(policyOperations), ShownRule)
    .describe('What may move money out of the wallet, by operation. An operation that is not named may not.'),
  tokens: z.record(z.string(), Caps).describe('What may leave, by token symbol. A token that is not named may not.'),
})

export const WalletPolicy = z.strictObject({
  masterWalletId: id('mwt'),
  policy: ShownDocument.nullable().meta({ description: 'The policy; null if none is set, and nothing is limited.' }),
  updatedAt: Instant.nullable().describe('When the policy was last set; null if none was.'),
})
export type WalletPolicy = z.input<typeof WalletPolicy>

named({ PolicyRule: ShownRule, EffectivePolicy: ShownDocument, WalletPolicy })
