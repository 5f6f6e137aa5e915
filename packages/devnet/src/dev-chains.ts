import { type Address, type NetworkName, networkByName, tokenBySymbol } from '@purser/protocol'
import { type DevChain, startChain } from './chains.ts'
import type { DataDir } from './data-dir.ts'
import type { DevChainRecord } from './dev-file.ts'
import { fundNative, fundToken, tokenBalance } from './faucet.ts'
import { rpcHex } from './rpc.ts'

/** The chains of `npm start`. */
export const devNetworks = ['base-sepolia', 'eth-sepolia', 'tempo-moderato'] as const satisfies readonly NetworkName[]

const payerUnits = 1_000n
const gasWei = 10n ** 20n

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

/** Keeps gas on the account that sends settlements; on Tempo gas is paid in tokens. */
export async function fundSettler(chain: DevChain, settler: Address): Promise<void> {
  if (networkByName(chain.network)?.nativeCoin === null) return
  const held = BigInt(await rpcHex(chain.rpcUrl, 'eth_getBalance', [settler, 'latest']))
  if (held < gasWei / 2n) await fundNative(chain, settler, gasWei)
}

/** The chains as dev.json names them. */
export function chainRecords(chains: readonly DevChain[]): Record<string, DevChainRecord> {
  return Object.fromEntries(
    chains.map(({ network, chainId, rpcUrl, tokens }) => [network, { chainId, rpcUrl, tokens }]),
  )
}
