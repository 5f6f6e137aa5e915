import { chains } from '@purser/protocol'
import { z } from 'zod'
import { named } from '../../platform/named.ts'

/** The document's chain enumeration. */
export const ChainName = z
  .enum(chains)
  .describe('Name of a chain. In the test environment, the name of a main network means its test network.')

/**
 * A chain as the calling key sees it: in the test environment a mainnet name means its test network, and everything here but
 * `name` is that network's.
 */
export const ChainRecord = z.strictObject({
  name: ChainName,
  chainId: z.int().describe('EIP-155 id of the network.'),
  network: z.string().meta({ description: 'CAIP-2 id.', example: 'eip155:84532' }),
  isTestnet: z.boolean().describe('Whether it is a test network.'),
  nativeCoin: z
    .strictObject({
      symbol: z.string().describe('Symbol of the coin.'),
      decimals: z.int().describe('Decimals of the coin.'),
    })
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
  symbol: z.string().describe('Symbol of the token, by which requests name it.'),
  name: z.string().describe('Name of the token.'),
  address: z.string().describe('Address of the token contract.'),
  decimals: z.int().describe('Decimals of the token.'),
  eip3009: z.boolean().meta({ description: 'Whether a signed authorization (EIP-3009) can move it.' }),
  eip712: z
    .strictObject({
      name: z.string().describe('Name of the domain.'),
      version: z.string().describe('Version of the domain.'),
    })
    .nullable()
    .meta({ description: 'The domain under which the token checks signatures; null where it checks none.' }),
})
export type Token = z.input<typeof Token>

export const ChainParams = z.strictObject({ chain: ChainName })

named({ ChainName, ChainRecord, Token })
