import { chains } from '@purser/protocol'
import { z } from 'zod'
import { named } from '../../platform/named.ts'

/** The document's chain enumeration. */
export const ChainName = z.enum(chains)

/**
 * A chain as the calling key sees it: in the test environment a mainnet name means its test network, and everything here but
 * `name` is that network's.
 */
export const ChainRecord = z.strictObject({
  name: ChainName,
  chainId: z.int(),
  network: z.string().meta({ description: 'CAIP-2 id.', example: 'eip155:84532' }),
  isTestnet: z.boolean(),
  nativeCoin: z
    .strictObject({ symbol: z.string(), decimals: z.int() })
    .nullable()
    .meta({ description: 'The coin that pays gas; null where gas is paid in stablecoins.' }),
  explorerUrl: z.string().nullable().meta({
    description:
      'Block explorer: a transaction is at `/tx/<hash>`, an account at `/address/<address>`. Null where none knows the chain.',
    example: 'https://sepolia.basescan.org',
  }),
  configured: z.boolean().meta({ description: 'Whether this deployment has a node for it.' }),
  status: z.enum(['unknown', 'up', 'down']).nullable().meta({
    description:
      'Whether one of its nodes responds to the process that answers: unknown until it tried, null without a node.',
  }),
})
export type ChainRecord = z.input<typeof ChainRecord>

export const Token = z.strictObject({
  symbol: z.string(),
  name: z.string(),
  address: z.string(),
  decimals: z.int(),
  eip3009: z.boolean().meta({ description: 'Whether a signed authorization (EIP-3009) can move it.' }),
  eip712: z
    .strictObject({ name: z.string(), version: z.string() })
    .nullable()
    .meta({ description: 'The domain under which the token checks signatures; null where it checks none.' }),
})
export type Token = z.input<typeof Token>

export const ChainParams = z.strictObject({ chain: ChainName })

named({ ChainName, ChainRecord, Token })
