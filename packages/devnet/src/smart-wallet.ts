import { type Address, decodeFunctionResult, encodeFunctionData, type Hex, parseAbi } from 'viem'
import { type ReachableChain, sendFromDevAccount } from './faucet.ts'
import { walletFactoryAddress } from './predeploys.ts'
import { rpcHex } from './rpc.ts'

const factoryAbi = parseAbi([
  'function createWallet(address owner, uint256 salt) returns (address)',
  'function walletAddress(address owner, uint256 salt) view returns (address)',
])

/** The address of an owner's contract account, deployed or not. The account accepts its owner's signatures (EIP-1271). */
export async function smartWalletAddress(chain: ReachableChain, owner: Address, salt: bigint): Promise<Address> {
  const data = encodeFunctionData({ abi: factoryAbi, functionName: 'walletAddress', args: [owner, salt] })
  const response = await rpcHex(chain.rpcUrl, 'eth_call', [{ to: walletFactoryAddress, data }, 'latest'])
  return decodeFunctionResult({ abi: factoryAbi, functionName: 'walletAddress', data: response })
}

/** The call that deploys the account, for the EIP-6492 wrapper of a signature by an account that is not deployed yet. */
export function smartWalletDeployment(owner: Address, salt: bigint): { factory: Address; data: Hex } {
  const data = encodeFunctionData({ abi: factoryAbi, functionName: 'createWallet', args: [owner, salt] })
  return { factory: walletFactoryAddress, data }
}

/** Deploys the contract account and returns its address. */
export async function deploySmartWallet(chain: ReachableChain, owner: Address, salt: bigint): Promise<Address> {
  await sendFromDevAccount(chain, walletFactoryAddress, smartWalletDeployment(owner, salt).data)
  return smartWalletAddress(chain, owner, salt)
}
