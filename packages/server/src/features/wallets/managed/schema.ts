import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { Instant, Metadata, text } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import { TokenSymbols } from '../schema.ts'
import { AutoSweep } from './auto-sweep.ts'

export const NewMasterWallet = z.strictObject({
  name: text(200).optional(),
  chain: ChainName,
  supportedTokens: TokenSymbols,
  metadata: Metadata.optional(),
})
export type NewMasterWallet = z.output<typeof NewMasterWallet>

/** A wallet whose key the service holds. In the test environment `chainId` and `network` are those of the test network. */
export const MasterWallet = z.strictObject({
  id: id('mwt'),
  address: z.string(),
  chain: ChainName,
  chainId: z.int(),
  network: z.string().meta({ description: 'CAIP-2 id.', example: 'eip155:84532' }),
  name: z.string().nullable().meta({ description: 'Null if none was given.' }),
  provisionStatus: z.enum(['active', 'retired']),
  supportedTokens: z.array(z.string()),
  keyVersion: z.int().meta({ description: 'The version of the seed that the wallet was derived from.' }),
  autoSweep: AutoSweep.required().nullable().meta({ description: 'Its automatic sweep; null for none.' }),
  metadata: z.record(z.string(), z.unknown()),
  retiredAt: Instant.nullable().meta({ description: 'Null while it is active.' }),
  createdAt: Instant,
})
export type MasterWallet = z.input<typeof MasterWallet>

/** Omitted fields stay as they are. */
export const MasterWalletChange = z.strictObject({
  name: text(200).nullable().optional(),
  metadata: Metadata.optional().meta({ description: 'Replaces all existing metadata.' }),
  autoSweep: AutoSweep.nullable().optional().meta({ description: 'null turns it off.' }),
})
export type MasterWalletChange = z.output<typeof MasterWalletChange>

export const MasterWalletParams = z.strictObject({ id: id('mwt') })

named({ NewMasterWallet, MasterWallet, MasterWalletChange })
