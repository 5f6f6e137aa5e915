import type { Address } from '@purser/protocol'
import { encodeFunctionData, parseAbi } from 'viem'
import sanctionsList from './artifacts/TestSanctionsList.json' with { type: 'json' }
import { type ReachableChain, sendFromDevAccount } from './faucet.ts'
import { rpc } from './rpc.ts'

const abi = parseAbi(['function addToSanctionsList(address[])', 'function removeFromSanctionsList(address[])'])

/**
 * Puts a contract with the interface of Chainalysis' sanctions oracle at an address of a local chain. Its list is empty.
 */
export async function installSanctionsOracle(chain: ReachableChain, oracle: Address): Promise<void> {
  await rpc(chain.rpcUrl, 'anvil_setCode', [oracle, sanctionsList.deployedBytecode])
}

/** Adds accounts to the oracle's list. Resolves when that is in a block. */
export async function addSanctioned(
  chain: ReachableChain,
  oracle: Address,
  accounts: readonly Address[],
): Promise<void> {
  await sendFromDevAccount(
    chain,
    oracle,
    encodeFunctionData({ abi, functionName: 'addToSanctionsList', args: [accounts] }),
  )
}

export async function removeSanctioned(
  chain: ReachableChain,
  oracle: Address,
  accounts: readonly Address[],
): Promise<void> {
  const data = encodeFunctionData({ abi, functionName: 'removeFromSanctionsList', args: [accounts] })
  await sendFromDevAccount(chain, oracle, data)
}
