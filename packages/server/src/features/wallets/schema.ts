import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { CreatedAt, EvmAddress, Metadata, StoredMetadata, text } from '../../platform/wire.ts'
import { ChainName } from '../chains/index.ts'

export const TokenSymbols = z
  .array(z.string().min(1).max(32))
  .min(1)
  .max(32)
  .refine((symbols) => new Set(symbols).size === symbols.length, 'must name each token once')
  .meta({ example: ['USDC'] })

export const NewByoWallet = z.strictObject({
  address: EvmAddress.describe('Address of your wallet (EVM).'),
  chain: ChainName,
  supportedTokens: TokenSymbols.describe('Symbols of the tokens that it accepts.'),
  name: text(200).optional().describe('A name of your own.'),
  metadata: Metadata.optional(),
})
export type NewByoWallet = z.output<typeof NewByoWallet>

const amlStatuses = ['pending', 'clear', 'flagged'] as const
export const AmlStatus = z.enum(amlStatuses)

/**
 * A wallet whose key the customer keeps. `isActive` is false exactly while the address is flagged; `chain` is the
 * name that the caller sent.
 */
export const ByoWallet = z.strictObject({
  id: id('byw'),
  address: z.string().describe('Address of the wallet, with EIP-55 checksum.'),
  chain: ChainName,
  name: z.string().nullable().meta({ description: 'Null if none was given.' }),
  isActive: z.boolean().describe('Whether payments can be accepted: false while the address is flagged.'),
  amlStatus: AmlStatus.describe(
    'Result of sanctions screening: `pending` until it is known, then `clear` or `flagged`.',
  ),
  supportedTokens: z.array(z.string()).describe('Symbols of the tokens that it accepts.'),
  metadata: StoredMetadata,
  createdAt: CreatedAt,
})
export type ByoWallet = z.input<typeof ByoWallet>

/** Omitted fields stay as they are. */
export const WalletChange = z.strictObject({
  name: text(200).nullable().optional().meta({ description: 'A new name; null removes it.' }),
  metadata: Metadata.optional().meta({ description: 'Replaces all existing metadata.' }),
})
export type WalletChange = z.output<typeof WalletChange>

export const ByoWalletParams = z.strictObject({ id: id('byw') })

named({ NewByoWallet, ByoWallet, WalletChange })
