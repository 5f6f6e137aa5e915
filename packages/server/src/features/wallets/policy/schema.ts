import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { Instant } from '../../../platform/wire.ts'
import { Caps, policyOperations } from './document.ts'

const ShownRule = z.strictObject({ recipients: z.union([z.literal('any'), z.array(z.string())]) })

/** A document as it is returned: its addresses are checksummed. */
const ShownDocument = z.strictObject({
  operations: z.partialRecord(z.enum(policyOperations), ShownRule),
  tokens: z.record(z.string(), Caps),
})

export const WalletPolicy = z.strictObject({
  masterWalletId: id('mwt'),
  policy: ShownDocument.nullable().meta({ description: 'null: none is set, and nothing is limited.' }),
  updatedAt: Instant.nullable(),
})
export type WalletPolicy = z.input<typeof WalletPolicy>

named({ PolicyRule: ShownRule, EffectivePolicy: ShownDocument, WalletPolicy })
