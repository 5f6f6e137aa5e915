import { parseAddress, zeroAddress } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { CreatedAt, Metadata, StoredMetadata, text } from '../../platform/wire.ts'
import { ChainName } from '../chains/index.ts'

/**
 * An EVM address in a request, returned EIP-55 checksummed. A wrong checksum is refused, since it indicates a mistyped address, and so is
 * the zero address: money sent to either is lost.
 */
export const EvmAddress = z
  .string()
  .transform((written, ctx) => {
    const address = parseAddress(written)
    if (address !== undefined && address !== zeroAddress) return address
    const message = 'must be 0x and 40 hexadecimal digits, mixed case only with a correct EIP-55 checksum, not zero'
    ctx.addIssue({ code: 'custom', message, params: { problem: 'address-format-invalid' } })
    return z.NEVER
  })
  .meta({ example: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed' })

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
 * A wallet of the customer, as in the document, with its metadata. `isActive` is false exactly while the address is flagged; `chain` is the
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
