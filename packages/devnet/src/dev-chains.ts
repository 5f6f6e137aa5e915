import { type Address, type NetworkName, networkByName, tokenBySymbol } from '@purser/protocol'
import type { DevChain } from './chains.ts'
import type { DevChainRecord } from './dev-file.ts'
import { fundFees, fundToken, tokenBalance } from './faucet.ts'

/** The chains of `npm start`. */
export const devNetworks = ['base-sepolia', 'eth-sepolia', 'tempo-moderato'] as const satisfies readonly NetworkName[]

const payerUnits = 1_000n

/**
 * Gives the payer 1,000 of each token that it has none of, and the coin that it pays gas with. Other balances are left alone, so a restart changes
 * nothing.
 */
export async function fundPayer(chain: DevChain, payer: Address): Promise<void> {
  await fundTokens(chain, payer, payerUnits)
  await fundFees(chain, payer)
}

async function fundTokens(chain: DevChain, account: Address, units: bigint): Promise<void> {
  const network = networkByName(chain.network)
  for (const symbol of Object.keys(chain.tokens)) {
    if ((await tokenBalance(chain, symbol, account)) > 0n) continue
    const decimals = (network && tokenBySymbol(network, symbol)?.decimals) ?? 6
    await fundToken(chain, symbol, account, units * 10n ** BigInt(decimals))
  }
}

/** Keeps the settler account funded for fees: with native coin, on Tempo with pathUSD. */
export async function fundSettler(chain: DevChain, settler: Address): Promise<void> {
  await fundFees(chain, settler)
}

/**
 * The key of the faucet of `npm start`, which `POST /test/deposits` sends from: anvil's seventh, which is public. It
 * cannot be the dev account, because other tools send from that one, and the service assigns each account's nonces
 * itself. The ninth and the tenth are the sandbox's addresses that screening never clears.
 */
export const faucetKey = '0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e'
const faucetAddress: Address = '0x976EA74026E726554dB657fA54763abd0C3a0aa9'
const faucetUnits = 1_000_000n

/** Keeps the faucet funded for fees, and gives it a million of each token that it has none of. */
export async function fundFaucet(chain: DevChain): Promise<void> {
  // First: the fee token on Tempo is also a token that the faucet pays out.
  await fundTokens(chain, faucetAddress, faucetUnits)
  await fundFees(chain, faucetAddress)
}

/** The chains as dev.json names them. */
export function chainRecords(chains: readonly DevChain[]): Record<string, DevChainRecord> {
  return Object.fromEntries(
    chains.map(({ network, chainId, rpcUrl, tokens }) => [network, { chainId, rpcUrl, tokens }]),
  )
}
