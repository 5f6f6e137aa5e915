import { type Address, type NetworkName, networkByName, tokenBySymbol } from '@purser/protocol'
import { type DevChain, startChain } from './chains.ts'
import type { DataDir } from './data-dir.ts'
import type { DevChainRecord } from './dev-file.ts'
import { fundFees, fundToken, tokenBalance } from './faucet.ts'

/** The chains of `npm start`. */
export const devNetworks = ['base-sepolia', 'eth-sepolia', 'tempo-moderato'] as const satisfies readonly NetworkName[]

const payerUnits = 1_000n

/** Starts one chain on its state file; it goes on where it was. */
export function startDevChain(dataDir: DataDir, network: NetworkName): Promise<DevChain> {
  return startChain({ network, stateFile: dataDir.chainState(network) })
}

/** Gives the payer 1,000 of each token that it has none of. What it has is left as it is, so a restart changes nothing. */
export async function fundPayer(chain: DevChain, payer: Address): Promise<void> {
  const network = networkByName(chain.network)
  for (const symbol of Object.keys(chain.tokens)) {
    if ((await tokenBalance(chain, symbol, payer)) > 0n) continue
    const decimals = (network && tokenBySymbol(network, symbol)?.decimals) ?? 6
    await fundToken(chain, symbol, payer, payerUnits * 10n ** BigInt(decimals))
  }
}

/** Keeps on the account that sends settlements what pays for them: the chain's coin, on Tempo pathUSD. */
export async function fundSettler(chain: DevChain, settler: Address): Promise<void> {
  await fundFees(chain, settler)
}

/** The chains as dev.json names them. */
export function chainRecords(chains: readonly DevChain[]): Record<string, DevChainRecord> {
  return Object.fromEntries(
    chains.map(({ network, chainId, rpcUrl, tokens }) => [network, { chainId, rpcUrl, tokens }]),
  )
}
