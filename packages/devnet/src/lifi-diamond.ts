import type { Address } from '@purser/protocol'
import lifiDiamond from './artifacts/TestLifiDiamond.json' with { type: 'json' }
import type { ReachableChain } from './faucet.ts'
import { rpc } from './rpc.ts'

/** Puts a contract with the deposit interface of LI.FI's diamond at an address of a local chain, with coin to pay out. */
export async function installLifiDiamond({ rpcUrl }: ReachableChain, address: Address): Promise<void> {
  await rpc(rpcUrl, 'anvil_setCode', [address, lifiDiamond.deployedBytecode])
  await rpc(rpcUrl, 'anvil_setBalance', [address, `0x${(10n ** 21n).toString(16)}`])
}
