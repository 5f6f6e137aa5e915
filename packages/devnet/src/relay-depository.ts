import type { Address } from '@purser/protocol'
import depository from './artifacts/TestRelayDepository.json' with { type: 'json' }
import type { ReachableChain } from './faucet.ts'
import { rpc } from './rpc.ts'

/** Puts a contract with the deposit interface of Relay's depository at an address of a local chain. */
export async function installRelayDepository(chain: ReachableChain, depositoryAddress: Address): Promise<void> {
  await rpc(chain.rpcUrl, 'anvil_setCode', [depositoryAddress, depository.deployedBytecode])
}
