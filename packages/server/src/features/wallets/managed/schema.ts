import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { CreatedAt, Instant, Metadata, PageQuery, StoredMetadata, text } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import { TokenSymbols } from '../schema.ts'
import { AutoSweep } from './store.ts'

export const NewMasterWallet = z.strictObject({
  name: text(200).optional().describe('A name of your own.'),
  chain: ChainName.describe('The chain of the wallet.'),
  supportedTokens: TokenSymbols.describe('Symbols of the tokens that it accepts.'),
  metadata: Metadata.optional(),
})
export type NewMasterWallet = z.output<typeof NewMasterWallet>

/** A wallet whose key the service holds. In the test environment `chainId` and `network` are those of the test network. */
export const MasterWallet = z.strictObject({
  id: id('mwt'),
  address: z.string().describe('Address of the wallet, with EIP-55 checksum.'),
  chain: ChainName,
  chainId: z.int().describe('EIP-155 id of the network.'),
  network: z.string().meta({ description: 'CAIP-2 id.', example: 'eip155:84532' }),
  name: z.string().nullable().meta({ description: 'Null if none was given.' }),
  provisionStatus: z
    .enum(['active', 'retired'])
    .describe('`retired` once it was retired: its deposits are still detected, and it can be restored.'),
  supportedTokens: z.array(z.string()).describe('Symbols of the tokens that it accepts.'),
  keyVersion: z.int().meta({ description: 'The version of the seed that the wallet was derived from.' }),
  autoSweep: AutoSweep.required().nullable().meta({ description: 'Its automatic sweep; null for none.' }),
  metadata: StoredMetadata,
  retiredAt: Instant.nullable().meta({ description: 'Null while it is active.' }),
  createdAt: CreatedAt,
})
export type MasterWallet = z.input<typeof MasterWallet>

/** Omitted fields stay as they are. */
export const MasterWalletChange = z.strictObject({
  name: text(200).nullable().optional().describe('A new name; null removes it.'),
  metadata: Metadata.optional().meta({ description: 'Replaces all existing metadata.' }),
  autoSweep: AutoSweep.nullable().optional().meta({ description: 'The automatic sweep; null turns it off.' }),
})
export type MasterWalletChange = z.output<typeof MasterWalletChange>

export const MasterWalletListQuery = PageQuery.extend({
  childAddressId: id('cad').optional().describe('Only the wallet of this child address.'),
})
export type MasterWalletListQuery = z.output<typeof MasterWalletListQuery>

export const MasterWalletParams = z.strictObject({ id: id('mwt') })

named({ NewMasterWallet, MasterWallet, MasterWalletChange })
